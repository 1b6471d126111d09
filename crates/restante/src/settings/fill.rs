//! Fields by name: from a TOML table into the places where they belong, with the line in every complaint.

use std::ops::Range;
use std::sync::Arc;

use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::duration::parse_duration_ms;

/// What is wrong with a configuration, and where.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line}: {what}")]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl Problem {
    pub(super) fn at(text: &str, span: &Range<usize>, what: impl Into<String>) -> Self {
        let line = 1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count();
        Self { line, what: what.into() }
    }

    pub(super) fn syntax(error: &toml::de::Error, text: &str) -> Self {
        Self::at(text, &error.span().unwrap_or_default(), format!("it is not TOML ({})", error.message()))
    }
}

/// Where a value belongs.
pub(super) enum Place<'s> {
    /// A duration: `name = "10s"` or `name_ms = 10000`.
    Ms(&'s mut u64),
    Count(&'s mut u64),
    Count32(&'s mut u32),
    Size(&'s mut usize),
    Text(&'s mut String),
    SharedText(&'s mut Arc<str>),
    Texts(&'s mut Vec<String>),
    Codes(&'s mut Vec<u16>),
    Flag(&'s mut bool),
}

/// One field; a duration's name has no `_ms`.
pub(super) type Field<'s> = (&'static str, Place<'s>);

/// Reads one table into its fields. Names in `tables` are left to the caller.
pub(super) fn fill(table: &DeTable<'_>, mut fields: Vec<Field<'_>>, tables: &[&'static str], text: &str) -> Result<(), Problem> {
    let mut seen: Vec<&str> = Vec::new();
    // In the order of the file: the first mistake is the first that is told.
    let mut given: Vec<_> = table.iter().collect();
    given.sort_by_key(|(name, _)| name.span().start);
    for (name, value) in given {
        let (span, name) = (name.span(), name.get_ref().as_ref());
        if tables.contains(&name) {
            continue;
        }
        let is_ms = |(field, place): &Field<'_>| matches!(place, Place::Ms(_)) && name.strip_suffix("_ms") == Some(*field);
        let Some(index) = fields.iter().position(|field| field.0 == name || is_ms(field)) else {
            let names = fields.iter().map(|(name, _)| *name).chain(tables.iter().copied());
            return Err(Problem::at(text, &span, unknown(name, names)));
        };
        let (field, place) = &mut fields[index];
        if seen.contains(field) {
            return Err(Problem::at(text, &span, format!("{field} is given twice, as {field} and as {field}_ms: keep one")));
        }
        seen.push(field);
        put(place, value, *field != name).map_err(|what| Problem::at(text, &value.span(), format!("{name} {what}")))?;
    }
    Ok(())
}

/// The complaint about a name that nothing has.
fn unknown(name: &str, names: impl Iterator<Item = &'static str>) -> String {
    let distance = |candidate: &&str| strsim::osa_distance(candidate, name.strip_suffix("_ms").unwrap_or(name));
    match names.min_by_key(distance) {
        Some(nearest) => format!("there is no field {name}; did you mean {nearest}?"),
        None => format!("there is no field {name}"),
    }
}

fn put(place: &mut Place<'_>, value: &Spanned<DeValue<'_>>, in_ms: bool) -> Result<(), String> {
    let value = value.get_ref();
    match place {
        Place::Ms(ms) if in_ms => **ms = integer(value)?,
        Place::Ms(ms) => {
            let text = value.as_str().ok_or("must be a duration in quotes, such as \"10s\"")?;
            **ms = parse_duration_ms(text).map_err(|error| format!("is wrong: {error}"))?;
        }
        Place::Count(count) => **count = integer(value)?,
        Place::Count32(count) => **count = integer(value)?,
        Place::Size(size) => **size = integer(value)?,
        Place::Text(text) => **text = self::text(value)?,
        Place::SharedText(text) => **text = self::text(value)?.into(),
        Place::Texts(texts) => **texts = list(value, "texts in quotes")?.map(self::text).collect::<Result<_, _>>()?,
        Place::Codes(codes) => **codes = list(value, "status codes")?.map(integer).collect::<Result<_, _>>()?,
        Place::Flag(flag) => **flag = value.as_bool().ok_or("must be true or false")?,
    }
    Ok(())
}

fn text(value: &DeValue<'_>) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| "must be a text in quotes".to_owned())
}

fn list<'v>(value: &'v DeValue<'v>, of: &str) -> Result<impl Iterator<Item = &'v DeValue<'v>>, String> {
    let values = value.as_array().ok_or_else(|| format!("must be a list of {of}, such as [a, b]"))?;
    Ok(values.iter().map(Spanned::get_ref))
}

fn integer<N: TryFrom<u64>>(value: &DeValue<'_>) -> Result<N, String> {
    let number = value.as_integer().ok_or("must be a whole number")?;
    let read = u64::from_str_radix(number.as_str(), number.radix()).ok().and_then(|number| N::try_from(number).ok());
    read.ok_or_else(|| format!("is {number}, which is negative or too large"))
}
