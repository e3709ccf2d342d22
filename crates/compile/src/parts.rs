//! What generated code refers to by address.

use albireo_base::SqlError;
use memchr::memmem::Finder;

use super::runtime::changes::Writing;
use super::runtime::nodes::Node;
use super::runtime::prefetch::Ask;
use super::runtime::rows::Access;
use super::runtime::statements::{Escape, RowSink};
use super::runtime::variables::Placing;

/// Things whose addresses are in generated code; they stay where they are as long as this lives.
#[derive(Default)]
#[allow(clippy::vec_box, reason = "what is in a vector moves when it grows")]
pub(super) struct Parts {
    nodes: Vec<Box<Node>>,
    escapes: Vec<Box<Escape>>,
    sinks: Vec<Box<RowSink>>,
    placings: Vec<Box<Placing>>,
    accesses: Vec<Box<Access>>,
    writings: Vec<Box<Writing>>,
    /// How many aggregates there are that count each value once.
    pub(super) distinct: usize,
    asks: Vec<Box<Ask>>,

    texts: Vec<Box<[u8]>>,
    finders: Vec<Box<Finder<'static>>>,
    /// Statements that the interpreter does.
    pub(super) interpreted: usize,
    /// Statements that have code.
    pub(super) compiled: usize,
    /// Why the rest of the routine has no code: nothing of it may be run.
    pub(super) ended: Option<SqlError>,
}

/// Keeps a thing and gives its address.
#[allow(clippy::vec_box, reason = "what is in a vector moves when it grows")]
fn keep<T>(all: &mut Vec<Box<T>>, thing: T) -> *const T {
    all.push(Box::new(thing));
    &raw const **all.last().expect("pushed just now")
}

impl Parts {
    pub(super) fn node(&mut self, node: Node) -> *const Node {
        keep(&mut self.nodes, node)
    }

    pub(super) fn escape(&mut self, escape: Escape) -> *const Escape {
        keep(&mut self.escapes, escape)
    }

    pub(super) fn sink(&mut self, sink: RowSink) -> *const RowSink {
        keep(&mut self.sinks, sink)
    }

    pub(super) fn place(&mut self, placing: Placing) -> *const Placing {
        keep(&mut self.placings, placing)
    }

    pub(super) fn access(&mut self, access: Access) -> *const Access {
        keep(&mut self.accesses, access)
    }

    /// How many searches there are so far.
    pub(super) fn searches(&self) -> usize {
        self.accesses.len()
    }

    pub(super) fn writing(&mut self, writing: Writing) -> *const Writing {
        keep(&mut self.writings, writing)
    }

    /// How many asks there are so far.
    pub(super) fn asks(&self) -> usize {
        self.asks.len()
    }

    pub(super) fn ask(&mut self, ask: Ask) -> *const Ask {
        keep(&mut self.asks, ask)
    }

    /// What looks for a word.
    pub(super) fn finder(&mut self, word: &str) -> *const Finder<'static> {
        keep(&mut self.finders, Finder::new(word).into_owned())
    }

    pub(super) fn text(&mut self, text: &str) -> *const u8 {
        self.texts.push(text.as_bytes().into());
        self.texts.last().expect("pushed just now").as_ptr()
    }
}
