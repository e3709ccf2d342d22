//! Says beforehand which chunks are read that are not in memory, so that the disk works while others are looked at.

use std::sync::Arc;

use super::ScanStream;

/// Chunks that are said together: what lies together in a file is then read together, some hundred kilobytes of a column.
/// Those are said that come behind as many others, which the disk may be at.
const TOGETHER: usize = 32;

impl ScanStream {
    /// Chunk `i` is about to be read.
    pub(super) fn say_what_comes(&mut self, i: usize) {
        if !i.is_multiple_of(TOGETHER) {
            return;
        }
        let first = if i == 0 { 1 } else { i + TOGETHER };
        let spec = Arc::clone(&self.spec);
        for next in first..(i + 2 * TOGETHER).min(spec.data.chunk_count()) {
            let chunk = spec.data.chunk(next);
            if !chunk.is_away() {
                continue;
            }
            let Some(open) = self.undecided(next, &*chunk, &spec) else { continue };
            // What all of its rows come to may be known without reading them.
            let all = open.is_empty() && spec.others.is_empty();
            let rows = || chunk.live().map_or(chunk.slots(), |live| live.count_set_bits());
            match &self.adding {
                Some(adding) if all && adding.known(&*chunk, rows()).is_some() => {}
                _ => chunk.will_fetch(&spec.columns_read(&open)),
            }
        }
    }
}
