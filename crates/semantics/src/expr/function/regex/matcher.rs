//! Matching: where the leftmost match begins, how long PostgreSQL takes it, and what each parenthesis matched.
//!
//! The automata of `regex-automata` find where a match begins and which ends it can have; among these the
//! preferences choose, first for the whole and then for the parts from left to right, as PostgreSQL's matcher
//! does it.

use std::cell::OnceCell;

use regex_automata::meta;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

use super::super::Result;
use super::syntax::{Node, Options, Pattern, Preference, invalid};

/// The most memory that the automaton of a pattern takes.
const MAX_BYTES: usize = 10 << 20;

/// Where a match, or a parenthesis in it, begins and ends, in bytes.
pub(super) type Span = (usize, usize);

/// A part of a pattern with its automaton, which is built when it is needed.
#[derive(Debug)]
struct Part {
    text: String,
    options: Options,
    automaton: OnceCell<meta::Regex>,
}

fn build(text: &str, options: Options, kind: MatchKind) -> Result<meta::Regex> {
    let config = meta::Config::new().match_kind(kind).nfa_size_limit(Some(MAX_BYTES));
    let syntax = syntax::Config::new().case_insensitive(options.fold).nest_limit(1000);
    let built = meta::Builder::new().configure(config).syntax(syntax).build(text);
    built.map_err(|_| invalid("regular expression is too complex"))
}

impl Part {
    fn new(nodes: &[Node], options: Options) -> Self {
        let mut text = String::new();
        nodes.iter().for_each(|node| node.write(&mut text));
        Self { text, options, automaton: OnceCell::new() }
    }

    fn automaton(&self) -> Result<&meta::Regex> {
        if let Some(automaton) = self.automaton.get() {
            return Ok(automaton);
        }
        let built = build(&self.text, self.options, MatchKind::All)?;
        Ok(self.automaton.get_or_init(|| built))
    }

    /// The longest end of a match that begins at `from` and ends at `to` or before.
    fn longest(&self, text: &str, from: usize, to: usize) -> Result<Option<usize>> {
        let input = Input::new(text).range(from..to).anchored(Anchored::Yes);
        Ok(self.automaton()?.search_half(&input).map(|half| half.offset()))
    }

    /// The shortest end.
    fn shortest(&self, text: &str, from: usize, to: usize) -> Result<Option<usize>> {
        let input = Input::new(text).range(from..to).anchored(Anchored::Yes).earliest(true);
        Ok(self.automaton()?.search_half(&input).map(|half| half.offset()))
    }

    /// Whether a match ends just there.
    fn exactly(&self, text: &str, from: usize, to: usize) -> Result<bool> {
        Ok(self.longest(text, from, to)? == Some(to))
    }
}

/// The parts that have parentheses, down to those that have none.
#[derive(Debug)]
enum Tree {
    /// No parentheses inside.
    Leaf(Part),
    Capture(usize, Box<Tree>),
    Concat {
        part: Part,
        left: Box<Tree>,
        right: Box<Tree>,
        shortest: bool,
    },
    Either {
        part: Part,
        branches: Vec<Tree>,
    },
    Repeat {
        part: Part,
        inner: Box<Tree>,
        least: usize,
        most: Option<usize>,
        shortest: bool,
    },
}

impl Tree {
    fn of(node: &Node, options: Options) -> Self {
        let part = || Part::new(std::slice::from_ref(node), options);
        if !node.captures() {
            return Self::Leaf(part());
        }
        match node {
            Node::Atom(_) => Self::Leaf(part()),
            Node::Capture(number, inner) => Self::Capture(*number, Box::new(Self::of(inner, options))),
            Node::Concat(items) => Self::concat(items, options),
            Node::Either(branches) => {
                let branches = branches.iter().map(|branch| Self::of(branch, options)).collect();
                Self::Either { part: part(), branches }
            }
            Node::Repeat { inner, least: 1, most: Some(1), .. } => Self::of(inner, options),
            Node::Repeat { inner, least: least @ 1.., most, prefers } => {
                // Only the last turn's parentheses count; those before it are one part.
                let before = Node::Repeat {
                    inner: inner.clone(),
                    least: least - 1,
                    most: most.map(|most| most - 1),
                    prefers: prefers.or_else(|| inner.prefers()),
                };
                let shortest = before.prefers() == Some(Preference::Shortest);
                Self::Concat {
                    part: part(),
                    left: Box::new(Self::Leaf(Part::new(&[before], options))),
                    right: Box::new(Self::of(inner, options)),
                    shortest,
                }
            }
            Node::Repeat { inner, least, most, .. } => Self::Repeat {
                part: part(),
                inner: Box::new(Self::of(inner, options)),
                least: *least as usize,
                most: most.map(|most| most as usize),
                shortest: inner.prefers() == Some(Preference::Shortest),
            },
        }
    }

    /// Neighbours without parentheses and with one preference are one part.
    fn concat(items: &[Node], options: Options) -> Self {
        let mut prefers = None;
        let plain = items.iter().take_while(|item| {
            let own = item.prefers();
            let fits = !item.captures() && (own.is_none() || prefers.is_none() || own == prefers);
            prefers = prefers.or(own);
            fits
        });
        let count = plain.count();
        if count == items.len() {
            return Self::Leaf(Part::new(items, options));
        }
        let (left, rest) = items.split_at(count.max(1));
        let left_tree = match count {
            0 => Self::of(&left[0], options),
            _ => Self::Leaf(Part::new(left, options)),
        };
        if rest.is_empty() {
            return left_tree;
        }
        let shortest = left.iter().find_map(Node::prefers) == Some(Preference::Shortest);
        Self::Concat {
            part: Part::new(items, options),
            left: Box::new(left_tree),
            right: Box::new(Self::concat(rest, options)),
            shortest,
        }
    }

    /// Forgets what the parentheses inside matched.
    fn forget(&self, groups: &mut Groups) {
        match self {
            Self::Leaf(_) => {}
            Self::Capture(number, inner) => {
                if let Some(group) = groups.get_mut(*number) {
                    *group = None;
                }
                inner.forget(groups);
            }
            Self::Concat { left, right, .. } => {
                left.forget(groups);
                right.forget(groups);
            }
            Self::Either { branches, .. } => branches.iter().for_each(|branch| branch.forget(groups)),
            Self::Repeat { inner, .. } => inner.forget(groups),
        }
    }

    fn part(&self) -> &Part {
        match self {
            Self::Leaf(part)
            | Self::Concat { part, .. }
            | Self::Either { part, .. }
            | Self::Repeat { part, .. } => part,
            Self::Capture(_, inner) => inner.part(),
        }
    }
}

/// A pattern that is ready to match.
#[derive(Debug)]
pub(super) struct Matcher {
    start: meta::Regex,
    tree: Tree,
    shortest: bool,
    pub(super) captures: usize,
}

impl Matcher {
    /// Makes the automata of a pattern.
    pub(super) fn new(pattern: &Pattern) -> Result<Self> {
        let mut text = String::new();
        pattern.root.write(&mut text);
        Ok(Self {
            start: build(&text, pattern.options, MatchKind::LeftmostFirst)?,
            tree: Tree::of(&pattern.root, pattern.options),
            shortest: pattern.root.prefers() == Some(Preference::Shortest),
            captures: pattern.captures,
        })
    }

    /// Whether the text has a match.
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.start.is_match(text)
    }

    /// The first match that begins at `from` or later.
    pub(super) fn find(&self, text: &str, from: usize) -> Result<Option<Span>> {
        let Some(found) = self.start.find(Input::new(text).range(from..)) else { return Ok(None) };
        let (begin, part) = (found.start(), self.tree.part());
        let end = match self.shortest {
            true => part.shortest(text, begin, text.len())?,
            false => part.longest(text, begin, text.len())?,
        };
        Ok(Some((begin, end.unwrap_or(found.end()))))
    }

    /// What the parentheses matched within a match; the first is the whole.
    pub(super) fn groups(&self, text: &str, (begin, end): Span) -> Result<Vec<Option<Span>>> {
        let mut groups = vec![None; self.captures + 1];
        groups[0] = Some((begin, end));
        if self.captures > 0 {
            dissect(&self.tree, text, begin, end, &mut groups)?;
        }
        Ok(groups)
    }
}

type Groups = [Option<Span>];

/// Finds what the parentheses of a part matched that matches as a whole; false if it cannot be.
fn dissect(tree: &Tree, text: &str, begin: usize, end: usize, groups: &mut Groups) -> Result<bool> {
    match tree {
        Tree::Leaf(_) => Ok(true),
        Tree::Capture(number, inner) => {
            let found = dissect(inner, text, begin, end, groups)?;
            if found && let Some(group) = groups.get_mut(*number) {
                *group = Some((begin, end));
            }
            Ok(found)
        }
        Tree::Either { branches, .. } => {
            for branch in branches {
                if branch.part().exactly(text, begin, end)? && dissect(branch, text, begin, end, groups)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Tree::Concat { left, right, shortest: false, .. } => {
            let mut middle = left.part().longest(text, begin, end)?;
            while let Some(at) = middle {
                if split(left, right, text, (begin, at, end), groups)? {
                    return Ok(true);
                }
                let Some(shorter) = before(text, begin, at) else { break };
                middle = left.part().longest(text, begin, shorter)?;
            }
            Ok(false)
        }
        Tree::Concat { left, right, .. } => {
            for at in begin..=end {
                if text.is_char_boundary(at)
                    && left.part().exactly(text, begin, at)?
                    && split(left, right, text, (begin, at, end), groups)?
                {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Tree::Repeat { inner, least, most, shortest, .. } => {
            let needed = (*least).max(1);
            let most = most.unwrap_or(usize::MAX).min((end - begin).max(needed));
            let mut ends = Vec::new();
            let turns = Turns { inner, text, end, least: needed, most, shortest: *shortest };
            // No turn at all is what is left if not even an empty one can be.
            Ok(repeat(&turns, begin, &mut ends, groups)? || *least == 0 && begin == end)
        }
    }
}

/// The place of the character before `at`, not before `begin`.
fn before(text: &str, begin: usize, at: usize) -> Option<usize> {
    text.get(begin..at)?.char_indices().next_back().map(|(n, _)| begin + n)
}

fn split(
    left: &Tree,
    right: &Tree,
    text: &str,
    (begin, middle, end): (usize, usize, usize),
    groups: &mut Groups,
) -> Result<bool> {
    Ok(right.part().exactly(text, middle, end)?
        && dissect(left, text, begin, middle, groups)?
        && dissect(right, text, middle, end, groups)?)
}

/// A part that is repeated.
struct Turns<'t> {
    inner: &'t Tree,
    text: &'t str,
    end: usize,
    least: usize,
    most: usize,
    shortest: bool,
}

/// Finds the turns of a repetition from `from` on, behind those that end at `ends`.
fn repeat(
    turns: &Turns<'_>,
    from: usize,
    ends: &mut Vec<(usize, usize)>,
    groups: &mut Groups,
) -> Result<bool> {
    if from == turns.end && ends.len() >= turns.least && !ends.is_empty() {
        for (begin, end) in ends.iter().copied() {
            turns.inner.forget(groups);
            if !dissect(turns.inner, turns.text, begin, end, groups)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if ends.len() >= turns.most {
        return Ok(false);
    }
    let part = turns.inner.part();
    let mut candidates = Vec::new();
    for at in from..=turns.end {
        // A turn of no length is taken only where the least number needs it.
        let empty = at == from;
        let needed = ends.len() < turns.least && from == turns.end;
        if turns.text.is_char_boundary(at) && (!empty || needed) && part.exactly(turns.text, from, at)? {
            candidates.push(at);
        }
    }
    if !turns.shortest {
        candidates.reverse();
    }
    for at in candidates {
        ends.push((from, at));
        if repeat(turns, at, ends, groups)? {
            return Ok(true);
        }
        ends.pop();
    }
    Ok(false)
}
