//! The functions a rules file can call, and what a `prefix_rule` call leaves behind.

use std::cell::RefCell;

use checkrein_core::input::RuleDecision;
use starlark::any::ProvidesStaticType;
use starlark::environment::GlobalsBuilder;
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::values::Value;
use starlark::values::list::{ListRef, UnpackList};
use starlark::values::none::NoneType;

use crate::rules::{Rule, RuleSet};

pub(super) use collected::Calls;

#[expect(
    unsafe_code,
    reason = "starlark's derive; a type without lifetimes is its own static type"
)]
mod collected {
    use super::{Call, ProvidesStaticType, RefCell};

    /// What the builtins collect while a file is evaluated.
    #[derive(Debug, ProvidesStaticType)]
    pub(in super::super) struct Calls(pub(in super::super) RefCell<Vec<Call>>);
}

/// One `prefix_rule` call.
#[derive(Debug)]
pub(super) struct Call {
    /// Where it stands, from 1.
    pub(super) line: usize,
    /// One rule per head.
    pub(super) rules: Vec<Rule>,
    /// What its author expects of them.
    pub(super) examples: Examples,
}

/// Commands that a call's rules must hold for, and must not.
#[derive(Debug)]
pub(super) struct Examples {
    matching: Vec<Vec<String>>,
    other: Vec<Vec<String>>,
}

impl Examples {
    /// Checks them against the rules of the same call only, `not_match` first.
    pub(super) fn check(&self, rules: &RuleSet) -> Result<(), String> {
        if let Some(example) = self.other.iter().find(|argv| rules.matches_example(argv)) {
            return Err(format!(
                "expected example to not match rule: {:?}",
                shown(example)
            ));
        }
        let unmatched: Vec<String> = self
            .matching
            .iter()
            .filter(|argv| !rules.matches_example(argv))
            .map(|argv| shown(argv))
            .collect();
        if unmatched.is_empty() {
            return Ok(());
        }
        Err(format!(
            "expected every example to match at least one rule; unmatched examples: {unmatched:?}"
        ))
    }
}

fn shown(argv: &[String]) -> String {
    shlex::try_join(argv.iter().map(String::as_str)).unwrap_or_else(|_| argv.join(" "))
}

/// What the builtins refuse.
#[derive(Debug, thiserror::Error)]
enum RuleError {
    #[error("invalid decision: {0}")]
    Decision(String),
    #[error("invalid pattern element: {0}")]
    Pattern(String),
    #[error("invalid example: {0}")]
    Example(String),
    #[error("invalid rule: justification cannot be empty")]
    Justification,
    #[error("{0} is not acted on by this build; remove it or use a build that does")]
    NotActedOn(&'static str),
    #[error("rules cannot be collected here")]
    NoCollector,
}

impl From<RuleError> for starlark::Error {
    fn from(error: RuleError) -> Self {
        starlark::Error::new_native(error)
    }
}

#[starlark_module]
pub(super) fn rules_module(builder: &mut GlobalsBuilder) {
    fn prefix_rule<'v>(
        pattern: UnpackList<Value<'v>>,
        decision: Option<&'v str>,
        r#match: Option<UnpackList<Value<'v>>>,
        not_match: Option<UnpackList<Value<'v>>>,
        justification: Option<&'v str>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<NoneType> {
        let decision = decision.map_or(Ok(RuleDecision::Allow), read_decision)?;
        if justification.is_some_and(|text| text.trim().is_empty()) {
            return Err(RuleError::Justification.into());
        }
        let mut positions = Vec::with_capacity(pattern.items.len());
        for element in &pattern.items {
            positions.push(read_alternatives(*element)?);
        }
        let mut positions = positions.into_iter();
        let Some(heads) = positions.next() else {
            return Err(RuleError::Pattern("pattern cannot be empty".to_owned()).into());
        };
        let tail: Vec<Vec<String>> = positions.collect();
        let rules = heads
            .into_iter()
            .map(|head| Rule {
                head,
                tail: tail.clone(),
                decision,
                justification: justification.map(str::to_owned),
            })
            .collect();
        let examples = Examples {
            matching: read_examples(r#match)?,
            other: read_examples(not_match)?,
        };
        let line = eval
            .call_stack_top_location()
            .map_or(1, |place| place.resolve_span().begin.line + 1);
        let calls = eval
            .extra
            .and_then(|extra| extra.downcast_ref::<Calls>())
            .ok_or(RuleError::NoCollector)?;
        calls.0.borrow_mut().push(Call {
            line,
            rules,
            examples,
        });
        Ok(NoneType)
    }

    fn host_executable<'v>(
        #[starlark(args)] args: Value<'v>,
        #[starlark(kwargs)] kwargs: Value<'v>,
    ) -> starlark::Result<NoneType> {
        let _ = (args, kwargs);
        Err(RuleError::NotActedOn("host_executable").into())
    }

    fn network_rule<'v>(
        #[starlark(args)] args: Value<'v>,
        #[starlark(kwargs)] kwargs: Value<'v>,
    ) -> starlark::Result<NoneType> {
        let _ = (args, kwargs);
        Err(RuleError::NotActedOn("network_rule").into())
    }
}

fn read_decision(word: &str) -> Result<RuleDecision, RuleError> {
    match word {
        "allow" => Ok(RuleDecision::Allow),
        "prompt" => Ok(RuleDecision::Prompt),
        "forbidden" => Ok(RuleDecision::Forbidden),
        _ => Err(RuleError::Decision(word.to_owned())),
    }
}

/// One position of a pattern: a token, or a list of alternatives.
fn read_alternatives(element: Value<'_>) -> Result<Vec<String>, RuleError> {
    if let Some(token) = element.unpack_str() {
        return Ok(vec![token.to_owned()]);
    }
    let Some(list) = ListRef::from_value(element) else {
        return Err(RuleError::Pattern(format!(
            "pattern element must be a string or list of strings (got {})",
            element.get_type()
        )));
    };
    if list.is_empty() {
        return Err(RuleError::Pattern(
            "pattern alternatives cannot be empty".to_owned(),
        ));
    }
    list.iter()
        .map(|value| {
            value.unpack_str().map(str::to_owned).ok_or_else(|| {
                RuleError::Pattern(format!(
                    "pattern alternative must be a string (got {})",
                    value.get_type()
                ))
            })
        })
        .collect()
}

fn read_examples(examples: Option<UnpackList<Value<'_>>>) -> Result<Vec<Vec<String>>, RuleError> {
    examples.into_iter().flatten().map(read_example).collect()
}

fn read_example(value: Value<'_>) -> Result<Vec<String>, RuleError> {
    let invalid = |what: &str| RuleError::Example(what.to_owned());
    let wrong_type = || {
        RuleError::Example(format!(
            "example must be a string or list of strings (got {})",
            value.get_type()
        ))
    };
    if let Some(text) = value.unpack_str() {
        let words =
            shlex::split(text).ok_or_else(|| invalid("example has invalid shell syntax"))?;
        return match words.is_empty() {
            true => Err(invalid("example cannot be an empty string")),
            false => Ok(words),
        };
    }
    let list = ListRef::from_value(value).ok_or_else(wrong_type)?;
    if list.is_empty() {
        return Err(invalid("example cannot be an empty list"));
    }
    list.iter()
        .map(|word| word.unpack_str().map(str::to_owned).ok_or_else(wrong_type))
        .collect()
}
