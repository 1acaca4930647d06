//! `.rules` files → [`RuleSet`], once, when the policy is sealed: the only place
//! that knows Starlark. A stranger's file may be compiled here, so everything is
//! bounded: bytes, nesting, steps, memory, call depth.

mod bounds;
mod builtins;
mod error;
mod examples;
mod listing;

use std::cell::RefCell;

use starlark::codemap::FileSpanRef;
use starlark::environment::{Globals, GlobalsBuilder, Module};
use starlark::eval::{BeforeStmtFunc, BeforeStmtFuncDyn, Evaluator};
use starlark::syntax::{AstModule, Dialect};

use crate::check::{Hosts, Surroundings};
use crate::rules::RuleSet;
use builtins::{Call, Said};
pub use error::RulesError;
pub use examples::Example;
pub use listing::{Entry, Listing, Says};

/// Bytes of one rules file.
const MAX_FILE: usize = 1 << 20;
/// Function calls and loop rounds of one file; 10,000 generated rules take 20,000.
const MAX_TICKS: u64 = 200_000;
/// Statements of one file.
const MAX_STATEMENTS: u64 = 200_000;
/// Bytes of values of one file.
const MAX_HEAP: usize = 64 << 20;
/// Frames of the Starlark call stack.
const MAX_CALLS: usize = 50;
/// Stack of the thread that compiles: the AST is walked and dropped recursively, and
/// `bounds` keeps it shallow enough for this.
const STACK: usize = 64 << 20;

/// Compiles rule files, in this order, into one rule set.
///
/// # Errors
/// The first thing that is wrong, with file and line; an example that is not true, too.
pub fn compile(files: &[(&str, &str)]) -> Result<RuleSet, RulesError> {
    compile_from(files, &Surroundings::default())
}

/// The same where relative programs in examples begin here.
///
/// # Errors
/// As those of [`compile`].
pub fn compile_from(files: &[(&str, &str)], from: &Surroundings) -> Result<RuleSet, RulesError> {
    if files.iter().all(|(_, text)| text.trim().is_empty()) {
        return Ok(RuleSet::default());
    }
    let wrong = |file: &str, line, tried: &[Example]| match examples::complaint(tried) {
        None => Ok(()),
        Some(what) => Err(RulesError::Rule {
            file: file.to_owned(),
            line,
            what,
        }),
    };
    on_own_stack(|| Ok(compile_all(files, from, wrong)?.0))
}

/// What rule files say call by call, with their examples tried, and the rule set.
///
/// # Errors
/// The first thing that is wrong, with file and line. An example that is not true is none.
pub fn list(
    files: &[(&str, &str)],
    from: &Surroundings,
) -> Result<(RuleSet, Vec<Listing>), RulesError> {
    on_own_stack(|| compile_all(files, from, |_, _, _| Ok(())))
}

fn on_own_stack<T: Send>(
    work: impl FnOnce() -> Result<T, RulesError> + Send,
) -> Result<T, RulesError> {
    std::thread::scope(|scope| {
        let work = std::thread::Builder::new()
            .name("rules".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, work)
            .map_err(RulesError::Thread)?;
        // A panic of the evaluator is a bad file, not a crash of ours.
        work.join().unwrap_or(Err(RulesError::Crash))
    })
}

/// `judge` sees the examples of each call once its file was evaluated.
fn compile_all(
    files: &[(&str, &str)],
    from: &Surroundings,
    judge: impl Fn(&str, usize, &[Example]) -> Result<(), RulesError>,
) -> Result<(RuleSet, Vec<Listing>), RulesError> {
    let globals = GlobalsBuilder::standard()
        .with(builtins::rules_module)
        .build();
    let mut rules = Vec::new();
    let mut hosts = Hosts::new();
    let mut network = Vec::new();
    let mut listings = Vec::new();
    for (name, text) in files {
        let calls = evaluate(name, text, &globals)?;
        // Examples know all that the file says about paths, wherever it says so.
        for call in &calls {
            if let Said::Host { name, paths } = &call.what {
                hosts.insert(name.clone(), paths.clone());
            }
        }
        let mut entries = Vec::with_capacity(calls.len());
        for call in calls {
            let says = match call.what {
                Said::Rules {
                    rules: own,
                    examples,
                } => {
                    let made = RuleSet::new(own);
                    let tried = examples.tried(&made, &hosts, from);
                    judge(name, call.line, &tried)?;
                    let own = made.into_rules();
                    let says = Says::prefix(&own, tried);
                    rules.extend(own);
                    says
                }
                Said::Host { name, paths } => Says::Host { name, paths },
                Said::Network(rule) => {
                    network.push(rule.clone());
                    Says::Network(rule)
                }
            };
            entries.push(Entry {
                line: call.line,
                says,
            });
        }
        listings.push(Listing {
            file: (*name).to_owned(),
            entries,
        });
    }
    Ok((RuleSet::new(rules).with(hosts, network), listings))
}

/// The calls of one file, in order.
fn evaluate(name: &str, text: &str, globals: &Globals) -> Result<Vec<Call>, RulesError> {
    if text.len() > MAX_FILE {
        return Err(RulesError::TooLarge {
            file: name.to_owned(),
            limit: MAX_FILE,
        });
    }
    bounds::check(text).map_err(|line| RulesError::TooComplex {
        file: name.to_owned(),
        line,
    })?;
    let dialect = Dialect {
        enable_f_strings: true,
        ..Dialect::Extended
    };
    let ast = AstModule::parse(name, text.to_owned(), &dialect)
        .map_err(|error| RulesError::starlark(name, &error))?;
    let calls = builtins::Calls(RefCell::new(Vec::new()));
    Module::with_temp_heap(|module| {
        let mut evaluator = Evaluator::new(&module);
        evaluator.extra = Some(&calls);
        evaluator
            .set_max_callstack_size(MAX_CALLS)
            .and_then(|()| evaluator.set_max_heap_size(MAX_HEAP))
            .and_then(|()| evaluator.set_max_tick_count(MAX_TICKS))
            .map_err(starlark::Error::new_other)?;
        evaluator.before_stmt_for_dap(BeforeStmtFunc::from_dyn(Box::new(Bounds::default())));
        evaluator.eval_module(ast, globals).map(|_| ())
    })
    .map_err(|error| RulesError::starlark(name, &error))?;
    Ok(calls.0.into_inner())
}

/// The evaluator looks at its own limits only every thousand loop rounds or calls: forty
/// lines of `s = s + s` would never meet them. This looks before each statement.
#[derive(Default)]
struct Bounds {
    statements: u64,
}

impl<'e> BeforeStmtFuncDyn<'e> for Bounds {
    fn call<'v>(
        &mut self,
        _: FileSpanRef,
        _: bool,
        evaluator: &mut Evaluator<'v, '_, 'e>,
    ) -> starlark::Result<()> {
        self.statements += 1;
        if self.statements > MAX_STATEMENTS || evaluator.heap().allocated_bytes() > MAX_HEAP {
            return Err(starlark::Error::new_other(RulesError::Endless));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
