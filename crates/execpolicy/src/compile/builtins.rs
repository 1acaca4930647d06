//! The functions a rules file can call, and what each call leaves behind.

use std::cell::RefCell;

use checkrein_core::input::RuleDecision;
use starlark::any::ProvidesStaticType;
use starlark::environment::GlobalsBuilder;
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::values::Value;
use starlark::values::list::{ListRef, UnpackList};
use starlark::values::none::NoneType;

use super::examples::Examples;
use crate::check::plain;
use crate::network::{self, NetworkRule, Protocol};
use crate::rules::{Rule, basename};

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

/// One call.
#[derive(Debug)]
pub(super) struct Call {
    /// Where it stands, from 1.
    pub(super) line: usize,
    /// What it says.
    pub(super) what: Said,
}

/// What a call says.
#[derive(Debug)]
pub(super) enum Said {
    /// `prefix_rule`
    Rules {
        /// One rule per head.
        rules: Vec<Rule>,
        /// What its author expects of them.
        examples: Examples,
    },
    /// `host_executable`
    Host {
        /// A bare name.
        name: String,
        /// The paths that may stand for it.
        paths: Vec<String>,
    },
    /// `network_rule`
    Network(NetworkRule),
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
    #[error("invalid rule: {0}")]
    Rule(String),
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
        canonical_matching: Option<bool>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<NoneType> {
        let decision = decision.map_or(Ok(RuleDecision::Allow), read_decision)?;
        let justification = read_justification(justification)?;
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
                justification: justification.clone(),
                canonical: canonical_matching.unwrap_or(false),
            })
            .collect();
        let examples = Examples {
            matching: read_examples(r#match)?,
            other: read_examples(not_match)?,
        };
        collect(eval, Said::Rules { rules, examples })
    }

    fn host_executable<'v>(
        name: &'v str,
        paths: UnpackList<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<NoneType> {
        let invalid = |what: String| RuleError::Rule(format!("host_executable {what}"));
        if name.is_empty() {
            return Err(invalid("name cannot be empty".to_owned()).into());
        }
        if name.contains('/') || matches!(name, "." | "..") {
            let what = format!("name must be a bare executable name (got {name})");
            return Err(invalid(what).into());
        }
        let mut kept: Vec<String> = Vec::with_capacity(paths.items.len());
        for value in &paths.items {
            let Some(path) = value.unpack_str() else {
                let what = format!("paths must be strings (got {})", value.get_type());
                return Err(invalid(what).into());
            };
            if !path.starts_with('/') {
                return Err(invalid(format!("paths must be absolute (got {path})")).into());
            }
            let clean = plain(path);
            if basename(&clean) != name {
                let what = format!("path `{path}` must have basename `{name}`");
                return Err(invalid(what).into());
            }
            if !kept.contains(&clean) {
                kept.push(clean);
            }
        }
        let name = name.to_owned();
        collect(eval, Said::Host { name, paths: kept })
    }

    fn network_rule<'v>(
        host: &'v str,
        protocol: &'v str,
        decision: &'v str,
        justification: Option<&'v str>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<NoneType> {
        let protocol = Protocol::read(protocol).map_err(RuleError::Rule)?;
        let decision = match decision {
            "deny" => RuleDecision::Forbidden,
            word => read_decision(word)?,
        };
        let justification = read_justification(justification)?;
        let host = network::read_host(host).map_err(RuleError::Rule)?;
        let rule = NetworkRule {
            host,
            protocol,
            decision,
            justification,
        };
        collect(eval, Said::Network(rule))
    }
}

fn collect(eval: &Evaluator<'_, '_, '_>, what: Said) -> starlark::Result<NoneType> {
    let line = eval
        .call_stack_top_location()
        .map_or(1, |place| place.resolve_span().begin.line + 1);
    let calls = eval
        .extra
        .and_then(|extra| extra.downcast_ref::<Calls>())
        .ok_or(RuleError::NoCollector)?;
    calls.0.borrow_mut().push(Call { line, what });
    Ok(NoneType)
}

fn read_justification(text: Option<&str>) -> Result<Option<String>, RuleError> {
    if text.is_some_and(|text| text.trim().is_empty()) {
        return Err(RuleError::Rule("justification cannot be empty".to_owned()));
    }
    Ok(text.map(str::to_owned))
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
    if let Some(text) = value.unpack_str() {
        let words =
            shlex::split(text).ok_or_else(|| invalid("example string has invalid shell syntax"))?;
        return match words.is_empty() {
            true => Err(invalid("example cannot be an empty string")),
            false => Ok(words),
        };
    }
    let Some(list) = ListRef::from_value(value) else {
        return Err(RuleError::Example(format!(
            "example must be a string or list of strings (got {})",
            value.get_type()
        )));
    };
    if list.is_empty() {
        return Err(invalid("example cannot be an empty list"));
    }
    list.iter()
        .map(|word| {
            word.unpack_str().map(str::to_owned).ok_or_else(|| {
                RuleError::Example(format!(
                    "example tokens must be strings (got {})",
                    word.get_type()
                ))
            })
        })
        .collect()
}
