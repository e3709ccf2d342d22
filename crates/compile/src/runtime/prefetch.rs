//! Rows that a loop or a join will look for, found together before.
//!
//! Generated code writes the keys of the first rounds into [`Answer`]s, asks here for what their lookups
//! look at first, and then for their rows. In its round it takes the row from the answer, if the key is
//! still the one of the round, and the table's [`Table::moves`] what it was then: so neither a change of
//! the table nor a wrong guess of the key leads to another row than a lookup would. Of a search by a part of
//! the key the answer is all rows, in order, if they are few enough to be kept (`Space::kept`).

use albireo_base::Tid;
use albireo_execute::LiveRows;
use albireo_partition::Site;
use albireo_semantics::Stop;
use albireo_storage::{ColumnSet, RowLines, Table};

use super::rows::{IndexOf, RowAt, row_at};
use super::{Context, OK, guard};

/// For so many rounds rows are asked for, a power of 2.
pub(crate) const ROUNDS: usize = 64;

/// A key that is asked for, and its row.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    /// The row, if it was found. First, so that its address is the answer's. Of a search whose rows are kept:
    /// where the first is, and in place of a slot how many there are.
    row: RowAt,
    /// The bits of the key.
    key: [u64; 2],
    /// What says in which partition the row is.
    place: i64,
    /// [`NOTHING`], [`ASKED`] or [`FOUND`].
    state: u64,
    /// [`Table::moves`] of the row's table.
    moves: *const u64,
    /// What it was when the row was found.
    seen: u64,
}

/// There is no key.
pub(crate) const NOTHING: u64 = 0;
/// There is a key, whose row is not known.
pub(crate) const ASKED: u64 = 1;
/// The row is known.
pub(crate) const FOUND: u64 = 2;

/// Where in an [`Answer`] the halves of its key are.
pub(crate) const KEY_OFFSETS: [i32; 2] =
    [std::mem::offset_of!(Answer, key) as i32, std::mem::offset_of!(Answer, key) as i32 + 8];
/// Where [`Answer::place`] is.
pub(crate) const PLACE_OFFSET: i32 = std::mem::offset_of!(Answer, place) as i32;
/// Where [`Answer::state`] is.
pub(crate) const STATE_OFFSET: i32 = std::mem::offset_of!(Answer, state) as i32;
/// Where [`Answer::moves`] is.
pub(crate) const MOVES_OFFSET: i32 = std::mem::offset_of!(Answer, moves) as i32;
/// Where [`Answer::seen`] is.
pub(crate) const SEEN_OFFSET: i32 = std::mem::offset_of!(Answer, seen) as i32;

impl Answer {
    /// None.
    pub(crate) const NONE: Self = Self {
        row: RowAt { entries: std::ptr::null(), slot: 0, tid: Tid(0), site: 0 },
        key: [0; 2],
        place: 0,
        state: NOTHING,
        moves: std::ptr::null(),
        seen: 0,
    };
}

// SAFETY: between calls nobody follows its addresses; in a call only the thread that runs it does.
unsafe impl Send for Answer {}
// SAFETY: as above.
unsafe impl Sync for Answer {}

/// Lookups by a key of whole numbers, or searches for those whose keys begin with it, that are asked for
/// ahead.
pub(crate) struct Ask {
    pub(crate) of: IndexOf,
    /// What of the rows will be needed.
    pub(crate) lines: RowLines,
    /// What else will be needed, by the number that a CASE chooses it by.
    pub(crate) choices: Box<[(i64, RowLines)]>,
    /// How many rows of a search will be needed at most; `None` of a lookup.
    pub(crate) most: Option<usize>,
    /// Whether the rows of a search are kept, if there are no more.
    pub(crate) keeps: bool,
    /// Which of the routine's asks it is: its answers are as many times [`ROUNDS`] behind the first.
    pub(crate) number: usize,
}

impl Ask {
    /// The first so many of its answers.
    fn answers<'s>(&self, all: &'s mut [Answer], count: u64) -> &'s mut [Answer] {
        &mut all[self.number * ROUNDS..][..ROUNDS][..count as usize]
    }
}

/// The table's part where a row is, found again only for another place than before.
struct Tables<'s> {
    live: &'s LiveRows<'s>,
    known: Option<(i64, Site, &'s Table)>,
}

impl<'s> Tables<'s> {
    fn at(&mut self, of: &IndexOf, place: i64) -> Result<(Site, &'s Table), Stop> {
        match self.known {
            Some((known, site, table)) if known == place => Ok((site, table)),
            _ => {
                let (site, table) = of.table_of_key(self.live, place)?;
                self.known = Some((place, site, table));
                Ok((site, table))
            }
        }
    }
}

/// Asks for what the lookups of the first so many answers look at first.
pub(crate) unsafe extern "C" fn ask_for_keys(context: *mut Context<'_>, ask: *const Ask, count: u64) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2.
        context.ask_for_keys(unsafe { &*ask }, count);
        Ok(OK)
    })
}

/// Finds the rows of the first so many answers, and asks for what of them will be needed; `choice` is what
/// a CASE chooses by.
pub(crate) unsafe extern "C" fn find_rows(
    context: *mut Context<'_>,
    ask: *const Ask,
    count: u64,
    choice: i64,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2.
        let ask = unsafe { &*ask };
        if ask.keeps {
            context.machine.live.check_interrupt()?;
        }
        context.find_rows(ask, count, choice);
        context.note_answers(ask, count);
        Ok(OK)
    })
}

impl Context<'_> {
    #[inline]
    fn ask_for_keys(&mut self, ask: &Ask, count: u64) {
        let (of, answers) = (&ask.of, ask.answers(&mut self.space.answers, count));
        let mut tables = Tables { live: &self.machine.live, known: None };
        for answer in answers {
            // One of another partition is looked for, and refused, in its turn.
            if answer.state == ASKED
                && let Ok((_, table)) = tables.at(of, answer.place)
            {
                table.prefetch_key(of.index, of.key(answer.key));
            }
        }
    }

    #[inline]
    fn find_rows(&mut self, ask: &Ask, count: u64, choice: i64) {
        let (of, answers) = (&ask.of, ask.answers(&mut self.space.answers, count));
        let kept = &mut self.space.kept[ask.number];
        kept.clear();
        let thawed = self.space.asked[ask.number].emptied();
        kept.reserve(ask.most.filter(|_| ask.keeps).map_or(0, |most| (most + 1) * answers.len()));
        let chosen = ask.choices.iter().find(|(number, _)| *number == choice);
        let chosen = chosen.map(|(_, lines)| lines);
        let begin = kept.as_ptr();
        let mut tables = Tables { live: &self.machine.live, known: None };
        for answer in answers {
            if answer.state != ASKED {
                continue;
            }
            let Ok((site, table)) = tables.at(of, answer.place) else { continue };
            let key = of.key(answer.key);
            if let Some(most) = ask.most {
                let begin = kept.len();
                // Within what was reserved: the rows stay where they are.
                for tid in table.prefix(of.index, key).take(most + usize::from(ask.keeps)) {
                    table.prefetch_row(tid, &ask.lines);
                    if ask.keeps {
                        kept.push(row_at(table, site, tid, ColumnSet::ALL, thawed));
                    }
                }
                let rows = &kept[begin..];
                if ask.keeps && rows.len() <= most {
                    let (entries, slot) = (rows.as_ptr().cast(), rows.len() as u64);
                    answer.row = RowAt { entries, slot, tid: Tid(0), site: 0 };
                    (answer.moves, answer.seen) = (table.moves(), *table.moves());
                    answer.state = FOUND;
                }
            } else if let Some(tid) = table.find(of.index, key) {
                table.prefetch_row(tid, &ask.lines);
                if let Some(lines) = chosen {
                    table.prefetch_row(tid, lines);
                }
                table.prefetch_liveness(tid);
                answer.row = row_at(table, site, tid, ColumnSet::ALL, thawed);
                (answer.moves, answer.seen) = (table.moves(), *table.moves());
                answer.state = FOUND;
            }
        }
        assert_eq!(kept.as_ptr(), begin, "rows that answers refer to stay where they are");
    }

    /// Notes what the first so many answers have told: their rounds take it from there.
    fn note_answers(&mut self, ask: &Ask, count: u64) {
        if !self.machine.live.tx.notes_reads() {
            return;
        }
        for number in 0..count as usize {
            let answer = self.space.answers[ask.number * ROUNDS + number];
            if answer.state != FOUND {
                continue;
            }
            let key = ask.of.key(answer.key);
            if ask.most.is_none() {
                self.note_found(&ask.of, answer.row.site(&self.machine.live), key, Some(answer.row.tid));
                continue;
            }
            let Ok((site, _)) = ask.of.table_of_key(&self.machine.live, answer.place) else { continue };
            self.note_keys(&ask.of, site, key);
            // SAFETY: the rows that this answer was given just now, so many behind its address; they are kept.
            let rows = unsafe {
                std::slice::from_raw_parts(answer.row.entries.cast::<RowAt>(), answer.row.slot as usize)
            };
            let tx = &mut self.machine.live.tx;
            rows.iter().for_each(|row| tx.note_row(site, ask.of.table.id(), row.tid));
        }
    }
}
