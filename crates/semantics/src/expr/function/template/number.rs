//! Numbers written by a template.
//!
//! The steps are PostgreSQL's, position by position: the digits of the number stand in a text, and each pattern
//! consumes one of them or writes a blank before them.

use albireo_base::{Decimal, SqlError, SqlState, Value};

use super::super::Result;
use super::super::math;
use super::ordinal;
use crate::expr::convert::unexpected;
use crate::expr::number::{checked, numeric_overflow, out_of_range};

/// A pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Comma,
    Point,
    Zero,
    Nine,
    Blank,
    LocalPoint,
    Scientific,
    Fill,
    Group,
    Currency,
    Minus,
    Plus,
    Bracket,
    Roman { small: bool },
    PlusMinus,
    Spell,
    Sign,
    Ordinal { capitals: bool },
    Shift,
}

const KEYS: [(&str, Key); 19] = [
    (",", Key::Comma),
    (".", Key::Point),
    ("0", Key::Zero),
    ("9", Key::Nine),
    ("B", Key::Blank),
    ("D", Key::LocalPoint),
    ("EEEE", Key::Scientific),
    ("FM", Key::Fill),
    ("G", Key::Group),
    ("L", Key::Currency),
    ("MI", Key::Minus),
    ("PL", Key::Plus),
    ("PR", Key::Bracket),
    ("RN", Key::Roman { small: false }),
    ("SG", Key::PlusMinus),
    ("SP", Key::Spell),
    ("S", Key::Sign),
    ("TH", Key::Ordinal { capitals: true }),
    ("V", Key::Shift),
];

#[derive(Clone, Copy)]
enum Piece {
    Key(Key),
    Char(char),
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum SignAt {
    #[default]
    None,
    Before,
    Behind,
}

/// What a template asks for.
#[derive(Default)]
struct Template {
    pieces: Vec<Piece>,
    /// Digits before and after the point, and those that `V` shifts.
    before: usize,
    after: usize,
    shift: usize,
    /// The place of the first zero from 1, and of the last.
    zero_start: usize,
    zero_end: usize,
    sign: SignAt,
    digits_before_sign: usize,
    has_zero: bool,
    has_point: bool,
    fill: bool,
    local_sign: bool,
    minus: bool,
    plus: bool,
    bracket: bool,
    roman: bool,
    shifts: bool,
    scientific: bool,
}

fn key_at(rest: &str) -> Option<(Key, usize)> {
    KEYS.into_iter().find_map(|(name, key)| {
        let head = rest.get(..name.len())?;
        let small = head == name.to_ascii_lowercase() && head != name;
        let key = match key {
            Key::Roman { .. } => Key::Roman { small },
            Key::Ordinal { .. } => Key::Ordinal { capitals: !small },
            key => key,
        };
        (head == name || small).then_some((key, name.len()))
    })
}

fn syntax(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

impl Template {
    fn read(text: &str) -> Result<Self> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some((key, length)) = key_at(rest) {
                template.prepare(key)?;
                template.pieces.push(Piece::Key(key));
                rest = &rest[length..];
            } else if c == '"' {
                rest = template.quote(&rest[1..]);
            } else {
                if rest.starts_with("\\\"") {
                    rest = &rest[1..];
                }
                let c = rest.chars().next().unwrap_or(' ');
                template.pieces.push(Piece::Char(c));
                rest = &rest[c.len_utf8()..];
            }
        }
        Ok(template)
    }

    fn quote<'t>(&mut self, quoted: &'t str) -> &'t str {
        let mut chars = quoted.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => self.pieces.push(Piece::Char(chars.next().unwrap_or('\\'))),
                c => self.pieces.push(Piece::Char(c)),
            }
        }
        chars.as_str()
    }

    fn prepare(&mut self, key: Key) -> Result<()> {
        if self.scientific && key != Key::Scientific {
            return Err(syntax("\"EEEE\" must be the last pattern used"));
        }
        let mixed = || syntax("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
        match key {
            Key::Nine | Key::Zero => self.digit(key == Key::Zero)?,
            Key::Point | Key::LocalPoint => {
                if self.has_point {
                    return Err(syntax("multiple decimal points"));
                }
                if self.shifts {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                self.has_point = true;
            }
            Key::Fill => self.fill = true,
            Key::Sign => {
                if self.local_sign {
                    return Err(syntax("cannot use \"S\" twice"));
                }
                if self.plus || self.minus || self.bracket {
                    return Err(mixed());
                }
                self.sign = if self.has_point { SignAt::Behind } else { SignAt::Before };
                self.digits_before_sign = self.before;
                self.local_sign = true;
            }
            Key::Minus | Key::Plus | Key::PlusMinus if self.local_sign => return Err(mixed()),
            Key::Minus => self.minus = true,
            Key::Plus => self.plus = true,
            Key::PlusMinus => (self.plus, self.minus) = (true, true),
            Key::Bracket if self.local_sign || self.plus || self.minus => {
                return Err(syntax("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
            }
            Key::Bracket => self.bracket = true,
            Key::Roman { .. } => self.roman = true,
            Key::Shift if self.has_point => {
                return Err(syntax("cannot use \"V\" and decimal point together"));
            }
            Key::Shift => self.shifts = true,
            Key::Scientific => self.exponent()?,
            Key::Comma | Key::Blank | Key::Group | Key::Currency | Key::Spell | Key::Ordinal { .. } => {}
        }
        Ok(())
    }

    fn digit(&mut self, zero: bool) -> Result<()> {
        if self.bracket {
            let digit = if zero { 0 } else { 9 };
            return Err(syntax(&format!("\"{digit}\" must be ahead of \"PR\"")));
        }
        if !zero && self.shifts {
            self.shift += 1;
            return Ok(());
        }
        if zero && !self.has_zero && !self.has_point {
            self.has_zero = true;
            self.zero_start = self.before + 1;
        }
        match self.has_point {
            true => self.after += 1,
            false => self.before += 1,
        }
        if zero {
            self.zero_end = self.before + self.after;
        }
        Ok(())
    }

    fn exponent(&mut self) -> Result<()> {
        if self.scientific {
            return Err(syntax("cannot use \"EEEE\" twice"));
        }
        let other = self.fill || self.local_sign || self.bracket || self.minus || self.plus || self.roman;
        if other || self.shifts {
            return Err(syntax("\"EEEE\" is incompatible with other formats")
                .with_detail("\"EEEE\" may only be used together with digit and decimal point patterns."));
        }
        self.scientific = true;
        Ok(())
    }
}

/// A number by a template.
pub(super) fn write(value: &Value, text: &str) -> Result<String> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let mut template = Template::read(text)?;
    if template.roman {
        let number = whole(value)?;
        return Ok(Writer::new(template, roman(number), '\0').run());
    }
    if template.scientific {
        return Ok(scientific(value, template.before, template.after));
    }
    let digits = match value {
        Value::Double(number) => float_digits(*number, 15, &mut template),
        Value::Real(number) => float_digits(f64::from(*number), 6, &mut template),
        other => {
            let number = decimal(other)?;
            let shifted = decimal_digits(number, &mut template)?;
            if matches!(other, Value::BigInt(_)) && template.shift > 0 {
                let whole = shifted.split('.').next().unwrap_or_default();
                whole.parse::<i64>().map_err(|_| out_of_range("bigint"))?;
            }
            shifted
        }
    };
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ('-', digits.to_owned()),
        None => ('+', digits),
    };
    let length = digits.find('.').unwrap_or(digits.len());
    let mut writer = Writer::new(template, digits, sign);
    let (before, after) = (writer.template.before, writer.template.after);
    if length < before {
        writer.blanks = before - length;
    } else if length > before {
        let mut overflow = vec!['#'; before + after + 1];
        overflow[before] = '.';
        writer.number = overflow;
    }
    Ok(writer.run())
}

fn decimal(value: &Value) -> Result<Decimal> {
    Ok(match value {
        Value::Integer(n) => Decimal::new(i128::from(*n), 0),
        Value::BigInt(n) => Decimal::new(i128::from(*n), 0),
        Value::Decimal(number) => *number,
        _ => return Err(unexpected()),
    })
}

/// The number rounded to a whole one, as a Roman number wants it.
fn whole(value: &Value) -> Result<i64> {
    let n = match value {
        Value::Double(n) => n.round_ties_even() as i64,
        Value::Real(n) => n.round_ties_even() as i64,
        other => {
            let number = math::round_to(decimal(other)?, 0)?;
            i64::try_from(number.unscaled).map_err(|_| out_of_range("integer"))?
        }
    };
    match (value, i32::try_from(n)) {
        (Value::Decimal(_) | Value::BigInt(_), Err(_)) => Err(out_of_range("integer")),
        _ => Ok(n),
    }
}

fn roman(number: i64) -> String {
    if !(1..=3999).contains(&number) {
        return "#".repeat(15);
    }
    const PARTS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut left = number;
    let mut text = String::new();
    for (size, letters) in PARTS {
        while left >= size {
            text.push_str(letters);
            left -= size;
        }
    }
    text
}

fn decimal_digits(number: Decimal, template: &mut Template) -> Result<String> {
    let mut number = number;
    if template.shifts {
        let factor = 10_i128.checked_pow(template.shift as u32).ok_or_else(numeric_overflow)?;
        let shifted = number.unscaled.checked_mul(factor).ok_or_else(numeric_overflow)?;
        number = checked(Some(Decimal::new(shifted, number.scale)))?;
        template.before += template.shift;
    }
    let places = u8::try_from(template.after).unwrap_or(u8::MAX);
    if places >= number.scale {
        // More places than 128 bits hold are zeros all the same.
        let mut text = number.to_string();
        if number.scale == 0 && places > 0 {
            text.push('.');
        }
        text.extend(std::iter::repeat_n('0', usize::from(places - number.scale)));
        return Ok(text);
    }
    Ok(checked(number.rescale(places))?.to_string())
}

/// A float's digits, as many as it has at most `digits` significant ones.
fn float_digits(number: f64, digits: usize, template: &mut Template) -> String {
    let mut number = number;
    if template.shifts {
        number *= 10_f64.powi(template.shift as i32);
        template.before += template.shift;
    }
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let length = format!("{:.0}", number.abs()).len();
    if length >= digits {
        template.after = 0;
    } else if length + template.after > digits {
        template.after = digits - length;
    }
    format!("{number:.*}", template.after)
}

/// `1.23e+04`
fn scientific(value: &Value, before: usize, places: usize) -> String {
    let float = |number: f64| match number.is_finite() {
        true => format!("{number:.places$e}"),
        false => String::new(),
    };
    let text = match value {
        Value::Double(number) => float(*number),
        Value::Real(number) => float(f64::from(*number)),
        other => match decimal(other) {
            Ok(number) => decimal_scientific(number, places),
            Err(_) => String::new(),
        },
    };
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return format!(" {}.{}", "#".repeat(before), "#".repeat(places + 4));
    };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    let blank = if mantissa.starts_with('-') { "" } else { " " };
    format!("{blank}{mantissa}e{sign}{exponent:0>2}")
}

fn decimal_scientific(number: Decimal, places: usize) -> String {
    let digits = number.unscaled.unsigned_abs().to_string();
    if number.unscaled == 0 {
        let point = if places > 0 { "." } else { "" };
        return format!("0{point}{}e0", "0".repeat(places));
    }
    let mut exponent = digits.len() as i64 - 1 - i64::from(number.scale);
    let mut kept: Vec<u8> = digits.bytes().take(places + 1).map(|digit| digit - b'0').collect();
    if digits.as_bytes().get(places + 1).is_some_and(|digit| *digit >= b'5') {
        let mut at = kept.len();
        loop {
            if at == 0 {
                kept.insert(0, 1);
                kept.pop();
                exponent += 1;
                break;
            }
            at -= 1;
            if kept[at] < 9 {
                kept[at] += 1;
                break;
            }
            kept[at] = 0;
        }
    }
    kept.resize(places + 1, 0);
    let text: String = kept.iter().map(|digit| char::from(digit + b'0')).collect();
    let sign = if number.unscaled < 0 { "-" } else { "" };
    let point = if places > 0 { "." } else { "" };
    format!("{sign}{}{point}{}e{exponent}", &text[..1], &text[1..])
}

/// The state while the pieces are written.
struct Writer {
    template: Template,
    number: Vec<char>,
    /// Which of the number's characters is next.
    at: usize,
    sign: char,
    blanks: usize,
    sign_written: bool,
    /// The last digit after the point that counts, or the point.
    last: Option<usize>,
    count: i64,
    current: usize,
    within: bool,
    out: String,
}

impl Writer {
    fn new(template: Template, number: String, sign: char) -> Self {
        Self {
            template,
            number: number.chars().collect(),
            at: 0,
            sign,
            blanks: 0,
            sign_written: false,
            last: None,
            count: 0,
            current: 0,
            within: false,
            out: String::new(),
        }
    }

    fn run(mut self) -> String {
        self.begin();
        let pieces = std::mem::take(&mut self.template.pieces);
        for piece in pieces {
            match piece {
                Piece::Char(c) => self.out.push(c),
                Piece::Key(key) => self.key(key),
            }
        }
        // A number shorter than its template ends the text.
        if let Some(end) = self.out.find('\0') {
            self.out.truncate(end);
        }
        self.out
    }

    fn begin(&mut self) {
        let template = &mut self.template;
        template.zero_start = template.zero_start.saturating_sub(1);
        if template.roman {
            let fill = template.fill;
            let pieces = std::mem::take(&mut template.pieces);
            *template = Template { pieces, roman: true, fill, ..Template::default() };
        }
        if template.plus || template.minus {
            self.sign_written = !template.plus || template.minus;
        } else {
            if self.sign != '-' && template.fill {
                template.bracket = false;
            }
            self.sign_written = self.sign == '+' && template.fill && !template.local_sign;
            if template.sign == SignAt::Before && template.before == template.digits_before_sign {
                template.sign = SignAt::Behind;
            }
        }
        self.count = (template.after + template.before) as i64 - 1;
        if template.fill && template.has_point {
            self.last = last_relevant(&self.number);
            if let Some(last) = self.last.as_mut()
                && template.zero_end > self.blanks
            {
                let zero = (self.number.len() - 1).min(template.zero_end - self.blanks);
                *last = (*last).max(zero);
            }
        }
        if !self.sign_written && self.blanks == 0 {
            self.count += 1;
        }
    }

    fn key(&mut self, key: Key) {
        let fill = self.template.fill;
        match key {
            Key::Nine | Key::Zero | Key::Point | Key::LocalPoint => self.digit(key),
            Key::Comma | Key::Group if self.within => self.out.push(','),
            Key::Comma | Key::Group if !fill => self.out.push(' '),
            Key::Currency => self.out.push(' '),
            Key::Roman { small } => {
                let text: String = self.number.iter().collect();
                let text = if small { text.to_lowercase() } else { text };
                let text = if fill { text } else { format!("{text:>15}") };
                self.out.push_str(&text);
            }
            Key::Ordinal { capitals } => {
                let plain = !self.template.roman && !self.template.has_point && self.sign != '-';
                if plain && self.number.first() != Some(&'#') {
                    let number: String = self.number.iter().collect();
                    self.out.push_str(ordinal(&number, capitals));
                }
            }
            Key::Minus if self.sign == '-' => self.out.push('-'),
            Key::Plus if self.sign == '+' => self.out.push('+'),
            Key::Minus | Key::Plus if !fill => self.out.push(' '),
            Key::PlusMinus => self.out.push(self.sign),
            _ => {}
        }
    }

    fn next(&self) -> char {
        self.number.get(self.at).copied().unwrap_or('\0')
    }

    fn last_is_point(&self) -> bool {
        self.last.and_then(|last| self.number.get(last)) == Some(&'.')
    }

    /// Whether the zero before the point is left out.
    fn leaves_zero(&self) -> bool {
        !self.template.has_zero && self.at == 0 && self.next() == '0' && self.template.after != 0
    }

    fn sign_now(&mut self) {
        let template = &self.template;
        let begins = self.current >= self.blanks || template.has_zero && template.zero_start == self.current;
        if self.sign_written || !begins || self.leaves_zero() && !self.last_is_point() {
            return;
        }
        match self.sign {
            sign if template.local_sign => {
                if template.sign != SignAt::Before {
                    return;
                }
                self.out.push(sign);
            }
            sign if template.bracket => self.out.push(if sign == '+' { ' ' } else { '<' }),
            '+' if template.fill => {}
            '+' => self.out.push(' '),
            '-' => self.out.push('-'),
            _ => return,
        }
        self.sign_written = true;
    }

    fn digit(&mut self, key: Key) {
        if self.template.roman {
            return;
        }
        self.within = false;
        self.sign_now();
        let (fill, has_zero) = (self.template.fill, self.template.has_zero);
        if self.current < self.blanks && (self.template.zero_start > self.current || !has_zero) {
            if !fill {
                self.out.push(' ');
            }
        } else if has_zero && self.current < self.blanks {
            self.out.push('0');
            self.within = true;
        } else {
            self.consume(key);
        }
        self.end();
        self.current += 1;
    }

    fn consume(&mut self, key: Key) {
        let fill = self.template.fill;
        let next = self.next();
        if next == '.' {
            if !self.last_is_point() || fill {
                self.out.push('.');
            }
        } else if self.last.is_some_and(|last| self.at > last) && key != Key::Zero {
            // A zero that does not count.
        } else if self.leaves_zero() {
            if !fill {
                self.out.push(' ');
            } else if self.last_is_point() {
                self.out.push('0');
            }
        } else {
            self.out.push(next);
            self.within = true;
        }
        if next != '\0' {
            self.at += 1;
        }
    }

    /// What stands behind the last digit.
    fn end(&mut self) {
        let template = &self.template;
        let mut end = self.count + i64::from(self.blanks > 0) + i64::from(template.has_point);
        if self.last == Some(self.at) {
            end = self.current as i64;
        }
        if self.current as i64 + 1 != end {
            return;
        }
        if self.sign_written && template.bracket {
            self.out.push(if self.sign == '+' { ' ' } else { '>' });
        } else if template.local_sign && template.sign == SignAt::Behind {
            self.out.push(self.sign);
        }
    }
}

fn last_relevant(number: &[char]) -> Option<usize> {
    let point = number.iter().position(|c| *c == '.')?;
    let last = number[point + 1..].iter().rposition(|c| *c != '0');
    Some(last.map_or(point, |last| point + 1 + last))
}
