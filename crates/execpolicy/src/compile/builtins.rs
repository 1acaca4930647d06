//! The functions a rules file can call, and what each call leaves behind.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use checkrein_core::input::RuleDecision;
use starlark::any::ProvidesStaticType;
use starlark::environment::GlobalsBuilder;
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::values::Value;
use starlark::values::list::{ListRef, UnpackList};
use starlark::values::none::NoneType;

use super::error::RulesError;
use super::examples::Examples;
use super::meter::Meter;
use crate::check::plain;
use crate::network::{self, NetworkRule, Protocol};
use crate::rules::{Rule, basename};

pub(super) use collected::Calls;

#[expect(
    unsafe_code,
    reason = "starlark's derive; a type without lifetimes is its own static type"
)]
mod collected {
    use super::{Call, Cell, Meter, ProvidesStaticType, RefCell};

    /// What the builtins collect while a file is evaluated.
    #[derive(Debug, ProvidesStaticType)]
    pub(in super::super) struct Calls {
        pub(in super::super) made: RefCell<Vec<Call>>,
        pub(in super::super) meter: Meter,
        /// How many bytes of rules may still come.
        pub(in super::super) room: Cell<usize>,
    }
}

impl Calls {
    pub(super) fn with_room(room: usize) -> Self {
        Self {
            made: RefCell::default(),
            meter: Meter::default(),
            room: Cell::new(room),
        }
    }

    /// Takes room for something before it is made.
    fn take(&self, bytes: usize) -> Result<(), RuleError> {
        let left = self.room.get().checked_sub(bytes);
        self.room.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or(RuleError::Room)
    }

    /// A word that is kept.
    fn word(&self, word: &str) -> Result<String, RuleError> {
        self.take(cost(word))?;
        Ok(word.to_owned())
    }
}

/// What a word takes that is kept: itself, and where it is.
pub(super) fn cost(word: &str) -> usize {
    word.len() + 32
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
    #[error("the rules come to more than {} MiB: shorter lists, please", super::MAX_RULES >> 20)]
    Room,
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
        let calls = collector(eval)?;
        let decision = decision.map_or(Ok(RuleDecision::Allow), read_decision)?;
        let justification = read_justification(justification)?;
        let mut positions = Vec::new();
        for element in &pattern.items {
            positions.push(read_alternatives(*element, calls)?);
        }
        let mut positions = positions.into_iter();
        let Some(heads) = positions.next() else {
            return Err(RuleError::Pattern("pattern cannot be empty".to_owned()).into());
        };
        let tail: Vec<Vec<String>> = positions.collect();
        // Each head makes a rule of its own, with all that follows.
        let words = tail.iter().flatten().map(|word| cost(word));
        let rest = words.sum::<usize>() + justification.as_deref().map_or(0, cost);
        calls.take(heads.len().saturating_mul(rest))?;
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
            matching: read_examples(r#match, calls)?,
            other: read_examples(not_match, calls)?,
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
        let calls = collector(eval)?;
        let mut kept: Vec<String> = Vec::new();
        let mut known: HashSet<String> = HashSet::new();
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
            // It is taken apart and compared before it is kept.
            calls.take(4 * cost(path))?;
            if known.insert(clean.clone()) {
                kept.push(clean);
            }
        }
        let name = calls.word(name)?;
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
        collector(eval)?.take(cost(host) + justification.as_deref().map_or(0, cost))?;
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
    let calls = collector(eval)?;
    calls.made.borrow_mut().push(Call { line, what });
    Ok(NoneType)
}

fn collector<'a>(eval: &Evaluator<'_, 'a, '_>) -> Result<&'a Calls, RuleError> {
    eval.extra
        .and_then(|extra| extra.downcast_ref::<Calls>())
        .ok_or(RuleError::NoCollector)
}

#[starlark_module]
pub(super) fn meter_module(builder: &mut GlobalsBuilder) {
    /// Lets a value through that is not too large for how it will be used.
    fn __meter<'v>(
        #[starlark(require = pos)] value: Value<'v>,
        #[starlark(require = pos)] usage: i32,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        let heap = eval.heap().allocated_bytes();
        match collector(eval)?.meter.admits(value, usage, heap) {
            true => Ok(value),
            false => Err(starlark::Error::new_other(RulesError::Endless)),
        }
    }
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
fn read_alternatives(element: Value<'_>, calls: &Calls) -> Result<Vec<String>, RuleError> {
    if let Some(token) = element.unpack_str() {
        return Ok(vec![calls.word(token)?]);
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
            let token = value.unpack_str().ok_or_else(|| {
                RuleError::Pattern(format!(
                    "pattern alternative must be a string (got {})",
                    value.get_type()
                ))
            })?;
            calls.word(token)
        })
        .collect()
}

fn read_examples(
    examples: Option<UnpackList<Value<'_>>>,
    calls: &Calls,
) -> Result<Vec<Vec<String>>, RuleError> {
    let examples = examples.into_iter().flatten();
    examples.map(|value| read_example(value, calls)).collect()
}

fn read_example(value: Value<'_>, calls: &Calls) -> Result<Vec<String>, RuleError> {
    let invalid = |what: &str| RuleError::Example(what.to_owned());
    if let Some(text) = value.unpack_str() {
        // At most every second letter of it is a word.
        calls.take(text.len().saturating_mul(16))?;
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
            let token = word.unpack_str().ok_or_else(|| {
                RuleError::Example(format!(
                    "example tokens must be strings (got {})",
                    word.get_type()
                ))
            })?;
            calls.word(token)
        })
        .collect()
}
