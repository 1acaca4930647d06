//! Describes a violation: what is there, what is wanted, and where, in the terms of the document's
//! author.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use super::document::JsonOrMarkdownSections;
use super::validator::CompiledSchema;

/// Longest quoted value, in characters.
const MAX_QUOTED: usize = 60;
/// Longest list of choices or excerpt of a schema, in characters.
const MAX_CHOICES: usize = 120;

/// Returns the constraint as part of a finding's identity: two constraints on one place are two
/// findings.
pub(super) fn constraint_as_finding_id_part(kind: &Kind) -> String {
    let of = |limit: &dyn std::fmt::Display| format!(" {limit}");
    match kind {
        Kind::MinItems { limit }
        | Kind::MaxItems { limit }
        | Kind::MinLength { limit }
        | Kind::MaxLength { limit }
        | Kind::MinProperties { limit }
        | Kind::MaxProperties { limit } => of(limit),
        Kind::Minimum { limit }
        | Kind::Maximum { limit }
        | Kind::ExclusiveMinimum { limit }
        | Kind::ExclusiveMaximum { limit } => of(limit),
        Kind::Required { property } => of(&property.as_str().unwrap_or_default()),
        Kind::Pattern { pattern } => of(pattern),
        Kind::Format { format } => of(format),
        _ => String::new(),
    }
}

/// Names a place in the terms of the document's author; empty for the whole document.
pub(super) fn describe_document_place(form: JsonOrMarkdownSections, pointer: &str) -> String {
    let tokens: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect();
    let (section, inner) = match (form, tokens.split_first()) {
        (JsonOrMarkdownSections::Json, _) => return one_line(pointer),
        (JsonOrMarkdownSections::Sections, None) => return String::new(),
        (JsonOrMarkdownSections::Sections, Some(split)) => split,
    };
    let mut place = match section.as_str() {
        "" => "before the first heading".to_owned(),
        name => format!("section '{}'", one_line(name)),
    };
    let nth = |token: &String| token.parse::<usize>().map_or(0, |nth| nth + 1);
    match inner {
        [] => {}
        [part] => place.push_str(&format!(", {}", one_line(part))),
        [part, token, rest @ ..] => {
            // `items`, `links` and `rows` of a section: one of them is named in the singular.
            let one = part.strip_suffix('s').unwrap_or(part);
            place.push_str(&format!(", {} {}", one_line(one), nth(token)));
            if let Some(column) = rest.first() {
                place.push_str(&format!(", column '{}'", one_line(column)));
            }
        }
    }
    place
}

/// Describes what is there and what is wanted.
pub(super) fn describe_schema_violation(
    compiled: &CompiledSchema,
    form: JsonOrMarkdownSections,
    error: &ValidationError<'_>,
) -> String {
    let value = error.instance().as_ref();
    let here = quote_json_in_message(value);
    match error.kind() {
        Kind::MinItems { limit } => {
            count_below_minimum_text(json_entry_count(value), *limit, "item")
        }
        Kind::MaxItems { limit } => {
            count_above_maximum_text(json_entry_count(value), *limit, "item")
        }
        Kind::MinLength { limit } => {
            count_below_minimum_text(char_count_of_string_value(value), *limit, "character")
        }
        Kind::MaxLength { limit } => {
            count_above_maximum_text(char_count_of_string_value(value), *limit, "character")
        }
        Kind::MinProperties { limit } => count_below_minimum_text(
            json_entry_count(value),
            *limit,
            noun_for_document_part(form, error),
        ),
        Kind::MaxProperties { limit } => count_above_maximum_text(
            json_entry_count(value),
            *limit,
            noun_for_document_part(form, error),
        ),
        Kind::Required { property } => {
            let name = one_line(property.as_str().unwrap_or_default());
            match form {
                JsonOrMarkdownSections::Sections if error.instance_path().as_str().is_empty() => {
                    format!("the section '{name}' is missing: add a heading of that name")
                }
                JsonOrMarkdownSections::Sections | JsonOrMarkdownSections::Json => {
                    format!("'{name}' is missing")
                }
            }
        }
        Kind::Type { kind } => {
            let wanted = match kind {
                TypeKind::Single(one) => one.to_string(),
                TypeKind::Multiple(many) => {
                    let many: Vec<String> = many.iter().map(|one| one.to_string()).collect();
                    many.join(" or ")
                }
            };
            format!("{here} is no {wanted}")
        }
        Kind::Pattern { pattern } => format!("{here} does not match {}", one_line(pattern)),
        Kind::Format { format } => format!("{here} is no valid {}", one_line(format)),
        Kind::Enum { options } => {
            let choices = match options.as_array() {
                Some(options) => {
                    let options: Vec<String> = options.iter().map(quote_json_in_message).collect();
                    options.join(", ")
                }
                None => quote_json_in_message(options),
            };
            format!(
                "{here} is none of {}",
                shorten_to_one_line(&choices, MAX_CHOICES)
            )
        }
        Kind::Constant { expected_value } => {
            format!(
                "{here} where {} is wanted",
                quote_json_in_message(expected_value)
            )
        }
        Kind::Minimum { limit } => format!("{here} is less than {limit}"),
        Kind::Maximum { limit } => format!("{here} is more than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("{here} is not more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("{here} is not less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("{here} is no multiple of {multiple_of}"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> = unexpected.iter().map(|name| format!("'{name}'")).collect();
            let names = shorten_to_one_line(&names.join(", "), MAX_CHOICES);
            format!("may not have {}", names)
        }
        Kind::AdditionalItems { limit } => {
            count_above_maximum_text(json_entry_count(value), *limit as u64, "item")
        }
        Kind::UnevaluatedItems { .. } => format!("has more items than may be: {here}"),
        Kind::UniqueItems => "has the same item twice".to_owned(),
        Kind::Contains => describe_contains_violation(compiled, error),
        // For an object without any allowed property the library reports one error about the whole
        // object.
        Kind::FalseSchema
            if error
                .schema_path()
                .as_str()
                .ends_with("/additionalProperties") =>
        {
            format!(
                "may not have any {}",
                pluralize_noun(noun_for_document_part(form, error))
            )
        }
        Kind::FalseSchema => "may not be there".to_owned(),
        Kind::Not { .. } => {
            // From the schema as written: the compiled one contains the counting keyword.
            let not = schema_object_of_violation(compiled, error).and_then(|of| of.get("not"));
            let not = not.map_or_else(String::new, |not| format!(": {not}"));
            format!(
                "{here} fits what it may not{}",
                shorten_to_one_line(&not, MAX_CHOICES)
            )
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let here = error.instance_path();
            let of_another_type = |nested: &ValidationError<'_>| {
                matches!(nested.kind(), Kind::Type { .. }) && nested.instance_path() == here
            };
            // The nearest alternative is of the right type and has the fewest errors: of several
            // shapes it is most likely the one that was meant.
            let nearest = context
                .iter()
                .filter(|errors| !errors.is_empty())
                .min_by_key(|errors| (errors.iter().any(of_another_type), errors.len()));
            let nearest = nearest.and_then(|errors| errors.first()).map(|nearest| {
                let place = match nearest.instance_path() {
                    there if there == here => String::new(),
                    there => format!("{}: ", describe_document_place(form, there.as_str())),
                };
                format!(
                    "; the nearest: {place}{}",
                    describe_schema_violation(compiled, form, nearest)
                )
            });
            let count = context.len();
            let nearest = nearest.unwrap_or_default();
            format!("fits none of {count} alternatives{nearest}")
        }
        Kind::OneOfMultipleValid { .. } => {
            "fits more than one of the alternatives, where it is to fit exactly one".to_owned()
        }
        Kind::PropertyNames { error } => format!(
            "the name {}",
            describe_schema_violation(compiled, form, error)
        ),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            format!(
                "{here} could not be matched within bounds: make it shorter, or the pattern simpler"
            )
        }
        Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::Custom { .. }
        | Kind::FromUtf8 { .. }
        | Kind::Referencing(_) => one_line(&error.masked().to_string()),
    }
}

fn describe_contains_violation(compiled: &CompiledSchema, error: &ValidationError<'_>) -> String {
    let keywords = schema_object_of_violation(compiled, error);
    let number = |key: &str| keywords.and_then(|of| of.get(key)?.as_u64());
    let wanted = keywords.and_then(|of| of.get("contains"));
    let wanted = wanted.map_or_else(String::new, |wanted| {
        format!(" {}", shorten_to_one_line(&wanted.to_string(), MAX_CHOICES))
    });
    // JSON Schema: `contains` without `minContains` asks for one.
    let least = number("minContains").unwrap_or(1);
    let bounds = match number("maxContains") {
        Some(most) => format!("not {least} to {most}"),
        None => format!("fewer than {least}"),
    };
    let count = json_entry_count(error.instance());
    format!(
        "{bounds} of its {} fit{wanted}",
        count_with_noun(count, "item")
    )
}

/// Returns the schema object that holds the violated keyword.
pub(super) fn schema_object_of_violation<'a>(
    compiled: &'a CompiledSchema,
    error: &ValidationError<'_>,
) -> Option<&'a Value> {
    // The path leads through the compiled schema, which differs only by appended `allOf` entries,
    // so it holds in the written one too.
    let (parent, _) = error.schema_path().as_str().rsplit_once('/')?;
    compiled.schema.pointer(parent)
}

fn noun_for_document_part(
    form: JsonOrMarkdownSections,
    error: &ValidationError<'_>,
) -> &'static str {
    match form {
        JsonOrMarkdownSections::Sections if error.instance_path().as_str().is_empty() => "section",
        JsonOrMarkdownSections::Sections | JsonOrMarkdownSections::Json => "property",
    }
}

fn count_below_minimum_text(there: u64, limit: u64, noun: &str) -> String {
    format!(
        "{} where at least {limit} must be",
        count_with_noun(there, noun)
    )
}

fn count_above_maximum_text(there: u64, limit: u64, noun: &str) -> String {
    format!(
        "{} where at most {limit} may be",
        count_with_noun(there, noun)
    )
}

fn count_with_noun(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {}", pluralize_noun(noun)),
    }
}

fn pluralize_noun(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{noun}s"),
    }
}

fn json_entry_count(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.len() as u64,
        Value::Object(object) => object.len() as u64,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn char_count_of_string_value(value: &Value) -> u64 {
    value.as_str().map_or(0, |text| text.chars().count() as u64)
}

/// Quotes a value as JSON; of a container that is not empty, only its kind.
fn quote_json_in_message(value: &Value) -> String {
    match value {
        Value::Array(items) if !items.is_empty() => "an array".to_owned(),
        Value::Object(object) if !object.is_empty() => "an object".to_owned(),
        Value::String(text) => {
            // Cut before it is escaped, so that a long string is not written out whole.
            let head: String = text.chars().take(MAX_QUOTED + 1).collect();
            shorten_to_one_line(&Value::String(head).to_string(), MAX_QUOTED)
        }
        value => shorten_to_one_line(&value.to_string(), MAX_QUOTED),
    }
}

/// Puts the text on one line of at most `limit` characters.
pub(super) fn shorten_to_one_line(text: &str, limit: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= limit {
        return line;
    }
    let mut short: String = line.chars().take(limit.saturating_sub(1)).collect();
    short.push('…');
    short
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    // The text comes from a document that an agent wrote: control characters could disguise what
    // feedback says.
    words.join(" ").replace(char::is_control, "")
}
