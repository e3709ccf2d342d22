//! PostgreSQL's "advanced" regular expressions, as trees.
//!
//! Responsible for: reading a pattern with its options, and writing parts of it in the form that the crate
//! `regex-automata` reads. Not responsible for: matching (`matcher`).
//!
//! Back references and lookaround are refused: no automaton matches them.

use albireo_base::{SqlError, SqlState};

use super::super::Result;

/// The most that a bound may count to.
const MAX_COUNT: u32 = 255;
/// The deepest nesting of parentheses.
const MAX_DEPTH: usize = 200;

/// What the letters of a flags argument say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Options {
    pub(super) fold: bool,
    /// `.` and `[^...]` do not match a newline.
    pub(super) within_lines: bool,
    /// `^` and `$` match at newlines.
    pub(super) at_lines: bool,
    pub(super) expanded: bool,
    pub(super) literal: bool,
    pub(super) global: bool,
}

impl Options {
    /// Reads the letters; `None` at one that is none.
    pub(super) fn read(mut self, letters: &str) -> Option<Self> {
        for letter in letters.chars() {
            match letter {
                'g' => self.global = true,
                'i' => self.fold = true,
                'c' => self.fold = false,
                'm' | 'n' => (self.within_lines, self.at_lines) = (true, true),
                'p' => (self.within_lines, self.at_lines) = (true, false),
                's' => (self.within_lines, self.at_lines) = (false, false),
                'w' => (self.within_lines, self.at_lines) = (false, true),
                'x' => self.expanded = true,
                't' => self.expanded = false,
                'q' => self.literal = true,
                'a' => {}
                _ => return None,
            }
        }
        Some(self)
    }
}

/// Which of several matches at one place a part prefers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Preference {
    Longest,
    Shortest,
}

/// A part of a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Node {
    /// One character, a class of them, or a place, as `regex-automata` reads it.
    Atom(String),
    /// One behind the other.
    Concat(Vec<Node>),
    /// One of several.
    Either(Vec<Node>),
    /// A number of times; a count without a comma has no preference.
    Repeat { inner: Box<Node>, least: u32, most: Option<u32>, prefers: Option<Preference> },
    /// Parentheses that are counted, from 1.
    Capture(usize, Box<Node>),
}

impl Node {
    /// Whether it has parentheses that are counted.
    pub(super) fn captures(&self) -> bool {
        match self {
            Self::Atom(_) => false,
            Self::Concat(items) | Self::Either(items) => items.iter().any(Self::captures),
            Self::Repeat { inner, .. } => inner.captures(),
            Self::Capture(..) => true,
        }
    }

    /// What it prefers as a whole: of a sequence, what its first part with a preference does.
    pub(super) fn prefers(&self) -> Option<Preference> {
        match self {
            Self::Atom(_) => None,
            Self::Concat(items) => items.iter().find_map(Self::prefers),
            Self::Either(_) => Some(Preference::Longest),
            Self::Repeat { inner, prefers, .. } => prefers.or_else(|| inner.prefers()),
            Self::Capture(_, inner) => inner.prefers(),
        }
    }

    /// As `regex-automata` reads it.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Atom(atom) => out.push_str(atom),
            Self::Concat(items) => items.iter().for_each(|item| item.write(out)),
            Self::Either(branches) => {
                out.push_str("(?:");
                for (n, branch) in branches.iter().enumerate() {
                    if n > 0 {
                        out.push('|');
                    }
                    branch.write(out);
                }
                out.push(')');
            }
            Self::Repeat { inner, least, most, .. } => {
                out.push_str("(?:");
                inner.write(out);
                out.push_str(&match most {
                    Some(most) => format!("){{{least},{most}}}"),
                    None => format!("){{{least},}}"),
                });
            }
            Self::Capture(_, inner) => {
                out.push_str("(?:");
                inner.write(out);
                out.push(')');
            }
        }
    }
}

/// A pattern and what it is matched with.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) root: Node,
    pub(super) captures: usize,
    pub(super) options: Options,
}

pub(super) fn invalid(what: &str) -> SqlError {
    SqlError::new(SqlState(*b"2201B"), format!("invalid regular expression: {what}"))
}

fn bad_escape() -> SqlError {
    invalid("invalid escape \\ sequence")
}

fn unbalanced() -> SqlError {
    invalid("parentheses () not balanced")
}

/// Reads a pattern.
pub(super) fn parse(text: &str, options: Options) -> Result<Pattern> {
    let mut options = options;
    let mut text = text;
    if let Some(rest) = text.strip_prefix("***=") {
        (options.literal, text) = (true, rest);
    } else if let Some(rest) = text.strip_prefix("***:") {
        text = rest;
    } else if text.starts_with("***") {
        return Err(invalid("invalid regexp (reg version 0.8)"));
    }
    if options.literal {
        let root = Node::Concat(text.chars().map(|c| Node::Atom(exactly(c))).collect());
        return Ok(Pattern { root, captures: 0, options });
    }
    if let Some(rest) = text.strip_prefix("(?")
        && rest.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        let (letters, rest) = rest.split_once(')').ok_or_else(|| invalid("invalid embedded option"))?;
        let read = options.read(letters).filter(|_| !letters.contains(['g', 'a']));
        options = read.ok_or_else(|| invalid("invalid embedded option"))?;
        if options.literal {
            let root = Node::Concat(rest.chars().map(|c| Node::Atom(exactly(c))).collect());
            return Ok(Pattern { root, captures: 0, options });
        }
        text = rest;
    }
    let mut parser = Parser { rest: text, options, captures: 0, depth: 0 };
    let root = parser.either()?;
    match parser.rest.is_empty() {
        true => Ok(Pattern { root, captures: parser.captures, options }),
        false => Err(unbalanced()),
    }
}

/// A character that means itself.
fn exactly(c: char) -> String {
    match c.is_ascii_alphanumeric() || !c.is_ascii() {
        true => c.to_string(),
        false => format!("\\x{{{:x}}}", u32::from(c)),
    }
}

const WORD: &str = r"\p{Alphabetic}\p{Nd}_";

struct Parser<'t> {
    rest: &'t str,
    options: Options,
    captures: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn eat(&mut self, what: &str) -> bool {
        match self.rest.strip_prefix(what) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Skips comments, and in expanded syntax blanks.
    fn skip(&mut self) {
        loop {
            if self.options.expanded {
                self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
                if self.rest.starts_with('#') {
                    self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
                    continue;
                }
            }
            match self.rest.strip_prefix("(?#") {
                Some(comment) => self.rest = comment.split_once(')').map_or("", |(_, rest)| rest),
                None => return,
            }
        }
    }

    fn either(&mut self) -> Result<Node> {
        let mut branches = vec![self.branch()?];
        while self.eat("|") {
            branches.push(self.branch()?);
        }
        Ok(match branches.len() {
            1 => branches.remove(0),
            _ => Node::Either(branches),
        })
    }

    fn branch(&mut self) -> Result<Node> {
        let mut items = Vec::new();
        loop {
            self.skip();
            match self.peek() {
                None | Some('|' | ')') => break,
                Some(_) => items.push(self.quantified()?),
            }
        }
        Ok(Node::Concat(items))
    }

    fn quantified(&mut self) -> Result<Node> {
        let (atom, place) = self.atom()?;
        self.skip();
        let Some((least, most, comma)) = self.quantifier()? else { return Ok(atom) };
        if place {
            return Err(invalid("quantifier operand invalid"));
        }
        let prefers = match (comma, self.eat("?")) {
            (false, _) => None,
            (true, true) => Some(Preference::Shortest),
            (true, false) => Some(Preference::Longest),
        };
        self.skip();
        let again = matches!(self.peek(), Some('*' | '+' | '?'))
            || self.peek() == Some('{') && self.rest[1..].starts_with(|c: char| c.is_ascii_digit());
        match again {
            true => Err(invalid("quantifier operand invalid")),
            false => Ok(Node::Repeat { inner: Box::new(atom), least, most, prefers }),
        }
    }

    /// Least, most, and whether it has a preference of its own.
    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>, bool)>> {
        if self.eat("*") {
            return Ok(Some((0, None, true)));
        }
        if self.eat("+") {
            return Ok(Some((1, None, true)));
        }
        if self.eat("?") {
            return Ok(Some((0, Some(1), true)));
        }
        if self.peek() != Some('{') || !self.rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        self.next();
        let bad = || invalid("invalid repetition count(s)");
        let least = self.count().ok_or_else(bad)?;
        let (most, comma) = match self.eat(",") {
            false => (Some(least), false),
            true if self.peek().is_some_and(|c| c.is_ascii_digit()) => {
                (Some(self.count().ok_or_else(bad)?), true)
            }
            true => (None, true),
        };
        if !self.eat("}") || most.is_some_and(|most| most < least) {
            return Err(if self.rest.contains('}') || most.is_some_and(|most| most < least) {
                bad()
            } else {
                invalid("braces {} not balanced")
            });
        }
        Ok(Some((least, most, comma)))
    }

    fn count(&mut self) -> Option<u32> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest[..digits].parse().ok().filter(|n| *n <= MAX_COUNT);
        self.rest = &self.rest[digits..];
        number
    }

    /// An atom, and whether it is a place, which cannot be repeated.
    fn atom(&mut self) -> Result<(Node, bool)> {
        let text = |text: &str| Node::Atom(text.to_owned());
        match self.next() {
            Some('(') => self.group().map(|node| (node, false)),
            Some('[') if self.eat("[:<:]]") => Ok((text(r"\b{start}"), true)),
            Some('[') if self.eat("[:>:]]") => Ok((text(r"\b{end}"), true)),
            Some('[') => self.bracket().map(|class| (Node::Atom(class), false)),
            Some('.') => Ok((text(if self.options.within_lines { r"[^\n]" } else { "(?s:.)" }), false)),
            Some('^') => Ok((text(if self.options.at_lines { "(?m:^)" } else { r"\A" }), true)),
            Some('$') => Ok((text(if self.options.at_lines { "(?m:$)" } else { r"\z" }), true)),
            Some('\\') => self.escape(),
            Some('*' | '+' | '?') => Err(invalid("quantifier operand invalid")),
            Some('{') if self.peek().is_some_and(|c| c.is_ascii_digit()) => {
                Err(invalid("quantifier operand invalid"))
            }
            Some(c) => Ok((Node::Atom(exactly(c)), false)),
            None => Ok((Node::Concat(Vec::new()), false)),
        }
    }

    fn group(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(invalid("regular expression is too complex"));
        }
        let number = if self.eat("?:") {
            None
        } else if ["?=", "?!", "?<=", "?<!"].iter().any(|look| self.rest.starts_with(look)) {
            return Err(SqlError::unsupported("a lookahead or lookbehind in a regular expression"));
        } else if self.rest.starts_with('?') {
            return Err(invalid("quantifier operand invalid"));
        } else {
            self.captures += 1;
            Some(self.captures)
        };
        let inner = self.either()?;
        if !self.eat(")") {
            return Err(unbalanced());
        }
        self.depth -= 1;
        Ok(match number {
            Some(number) => Node::Capture(number, Box::new(inner)),
            // Repeated as a whole.
            None => Node::Concat(vec![Node::Repeat {
                inner: Box::new(inner),
                least: 1,
                most: Some(1),
                prefers: None,
            }]),
        })
    }

    fn escape(&mut self) -> Result<(Node, bool)> {
        let class = |text: &str| Ok((Node::Atom(text.to_owned()), false));
        let place = |text: &str| Ok((Node::Atom(text.to_owned()), true));
        match self.peek() {
            Some('A') => {
                self.next();
                place(r"\A")
            }
            Some('Z') => {
                self.next();
                place(r"\z")
            }
            Some('m') => {
                self.next();
                place(r"\b{start}")
            }
            Some('M') => {
                self.next();
                place(r"\b{end}")
            }
            Some('y') => {
                self.next();
                place(r"\b")
            }
            Some('Y') => {
                self.next();
                place(r"\B")
            }
            Some(c @ ('d' | 'D' | 's' | 'S' | 'w' | 'W')) => {
                self.next();
                class(&class_escape(c))
            }
            Some('1'..='9') => self.reference(),
            _ => Ok((Node::Atom(exactly(self.character()?)), false)),
        }
    }

    /// A back reference, or a character by its octal number.
    fn reference(&mut self) -> Result<(Node, bool)> {
        let digits: String = self.rest.chars().take_while(char::is_ascii_digit).take(3).collect();
        let number: usize = digits.parse().map_err(|_| bad_escape())?;
        if digits.len() == 1 || number <= self.captures {
            if number > self.captures {
                return Err(invalid("invalid backreference number"));
            }
            return Err(SqlError::unsupported("a back reference in a regular expression"));
        }
        let octal: String = self.rest.chars().take_while(|c| c.is_digit(8)).take(3).collect();
        let code = u32::from_str_radix(&octal, 8).map_err(|_| bad_escape())?;
        self.rest = &self.rest[octal.len()..];
        let c = char::from_u32(code).ok_or_else(bad_escape)?;
        Ok((Node::Atom(exactly(c)), false))
    }

    /// What a backslash makes of the next letters, where that is a character.
    fn character(&mut self) -> Result<char> {
        let c = self.next().ok_or_else(bad_escape)?;
        Ok(match c {
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'c' => {
                let c = self.next().ok_or_else(bad_escape)?;
                char::from_u32(u32::from(c) & 0x1f).ok_or_else(bad_escape)?
            }
            'u' => self.code(4, true)?,
            'U' => self.code(8, true)?,
            'x' => self.code(255, false)?,
            '0' => {
                let octal: String = self.rest.chars().take_while(|c| c.is_digit(8)).take(2).collect();
                self.rest = &self.rest[octal.len()..];
                let code = u32::from_str_radix(&octal, 8).unwrap_or(0);
                char::from_u32(code).ok_or_else(bad_escape)?
            }
            c if c.is_ascii_alphanumeric() => return Err(bad_escape()),
            c => c,
        })
    }

    /// A character by its number in `digits` hexadecimal digits, or in as many as there are.
    fn code(&mut self, digits: usize, all: bool) -> Result<char> {
        let found = self.rest.bytes().take(digits).take_while(u8::is_ascii_hexdigit).count();
        if found == 0 || all && found < digits {
            return Err(bad_escape());
        }
        let number = u32::from_str_radix(&self.rest[..found], 16).map_err(|_| bad_escape())?;
        self.rest = &self.rest[found..];
        char::from_u32(number).ok_or_else(bad_escape)
    }

    /// `[...]`, its opening bracket read.
    fn bracket(&mut self) -> Result<String> {
        let open = || invalid("brackets [] not balanced");
        let mut class = String::from("[");
        if self.eat("^") {
            class.push('^');
            if self.options.within_lines {
                class.push_str("\\n");
            }
        }
        let mut first = true;
        loop {
            if !first && self.eat("]") {
                break;
            }
            first = false;
            if let Some(name) = self.rest.strip_prefix("[:") {
                let (name, rest) = name.split_once(":]").ok_or_else(open)?;
                class.push_str(named_class(name)?);
                self.rest = rest;
                continue;
            }
            if self.rest.starts_with('\\')
                && let Some(c @ ('d' | 'D' | 's' | 'S' | 'w' | 'W')) = self.rest[1..].chars().next()
            {
                self.rest = &self.rest[2..];
                class.push_str(&class_escape(c));
                continue;
            }
            let from = self.member().ok_or_else(open)??;
            class.push_str(&exactly(from));
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.next();
                let to = self.member().ok_or_else(open)??;
                if to < from {
                    return Err(invalid("invalid character range"));
                }
                class.push('-');
                class.push_str(&exactly(to));
            }
        }
        class.push(']');
        Ok(class)
    }

    /// One character in brackets.
    fn member(&mut self) -> Option<Result<char>> {
        for (begin, end) in [("[.", ".]"), ("[=", "=]")] {
            if let Some(name) = self.rest.strip_prefix(begin) {
                let (name, rest) = name.split_once(end)?;
                self.rest = rest;
                let mut chars = name.chars();
                return Some(match (chars.next(), chars.next()) {
                    (Some(c), None) => Ok(c),
                    _ => Err(invalid("invalid collating element")),
                });
            }
        }
        match self.next()? {
            '\\' => Some(self.character()),
            c => Some(Ok(c)),
        }
    }
}

fn class_escape(letter: char) -> String {
    match letter {
        'd' => "[0-9]".to_owned(),
        'D' => "[^0-9]".to_owned(),
        's' => r"\s".to_owned(),
        'S' => r"\S".to_owned(),
        'w' => format!("[{WORD}]"),
        _ => format!("[^{WORD}]"),
    }
}

fn named_class(name: &str) -> Result<&'static str> {
    Ok(match name {
        "alpha" => r"\p{Alphabetic}",
        "digit" => "0-9",
        "alnum" => r"\p{Alphabetic}\p{Nd}",
        "upper" => r"\p{Uppercase}",
        "lower" => r"\p{Lowercase}",
        "space" => r"\s",
        "blank" => r" \t",
        "punct" => r"\p{P}\p{S}",
        "cntrl" => r"\p{Cc}",
        "graph" => r"\p{L}\p{M}\p{N}\p{P}\p{S}",
        "print" => r"\p{L}\p{M}\p{N}\p{P}\p{S}\x20",
        "xdigit" => "0-9A-Fa-f",
        "word" => WORD,
        _ => return Err(invalid("invalid character class")),
    })
}
