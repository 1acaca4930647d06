//! `.rules` files → [`RuleSet`], once, when the policy is sealed: the only place
//! that knows Starlark. A stranger's file may be compiled here, so everything is
//! bounded: bytes, nesting, steps, memory, call depth.

mod bounds;
mod builtins;
mod error;
mod examples;
mod listing;
mod meter;

use starlark::codemap::FileSpanRef;
use starlark::environment::{Globals, GlobalsBuilder, Module};
use starlark::eval::{BeforeStmtFunc, BeforeStmtFuncDyn, Evaluator};
use starlark::syntax::{AstModule, Dialect};

use crate::check::{Hosts, Surroundings};
use crate::rules::RuleSet;
use builtins::{Call, Calls, Said};
pub use error::RulesError;
pub use examples::Example;
use examples::Trials;
pub use listing::{Entry, Listing, Says};
use meter::Measured;

/// Bytes of one rules file.
const MAX_FILE: usize = 1 << 20;
/// Function calls and loop rounds of one file; 10,000 generated rules take 20,000.
const MAX_TICKS: u64 = 200_000;
/// The same where each value that is measured is a call more.
const MAX_TICKS_MEASURED: u64 = 4 * MAX_TICKS;
/// Statements of one file.
const MAX_STATEMENTS: u64 = 200_000;
/// Bytes of values of one file.
const MAX_HEAP: usize = 64 << 20;
/// Bytes of rules of all files, each first word with all that may follow it.
const MAX_RULES: usize = 16 << 20;
/// Frames of the Starlark call stack.
const MAX_CALLS: usize = 50;
/// Stack of the thread that compiles: the AST is walked and dropped recursively, and
/// `bounds` keeps it shallow enough for this, also where `meter` makes two levels of one.
const STACK: usize = 256 << 20;

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
    // Other blanks are mistakes to the language.
    let is_blank = |text: &str| text.bytes().all(|byte| matches!(byte, b' ' | b'\n'));
    if files.iter().all(|(_, text)| is_blank(text)) {
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
    let language = Language::new();
    let mut rules = Vec::new();
    let mut hosts = Hosts::new();
    let mut network = Vec::new();
    let mut listings = Vec::new();
    let mut room = MAX_RULES;
    let mut trials = Trials::default();
    for (name, text) in files {
        let calls = evaluate(name, text, &language, &mut room)?;
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
                    let tried = examples.tried(&made, &hosts, from, &mut trials);
                    let tried = tried.ok_or_else(|| RulesError::Rule {
                        file: (*name).to_owned(),
                        line: call.line,
                        what: "its examples take too long to be tried: fewer, or shorter lists"
                            .to_owned(),
                    })?;
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
fn evaluate(
    name: &str,
    text: &str,
    globals: &Language,
    room: &mut usize,
) -> Result<Vec<Call>, RulesError> {
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
    let parse = |text: &str| AstModule::parse(name, text.to_owned(), &dialect);
    let ast = parse(text).map_err(|error| RulesError::starlark(name, &error))?;
    match meter::measured(text, &ast) {
        Measured::AsItIs => {}
        Measured::NamesMeter(at) => {
            let before = text.get(..at).unwrap_or_default();
            return Err(RulesError::Rule {
                file: name.to_owned(),
                line: before.matches('\n').count() + 1,
                what: format!("`{}` is no name that a rules file may use", meter::NAME),
            });
        }
        Measured::Text(measured) => {
            // What cannot be measured is not run.
            let ast = parse(&measured).map_err(|_| RulesError::TooComplex {
                file: name.to_owned(),
                line: 1,
            })?;
            let calls = Calls::with_room(*room);
            // Any other mistake is met again, and said in the file's own words.
            if let Err(error) = run(ast, &globals.measuring, &calls, MAX_TICKS_MEASURED)
                && calls.meter.is_spent()
            {
                return Err(RulesError::starlark(name, &error));
            }
        }
    }
    let calls = Calls::with_room(*room);
    run(ast, &globals.plain, &calls, MAX_TICKS)
        .map_err(|error| RulesError::starlark(name, &error))?;
    *room = calls.room.get();
    Ok(calls.made.into_inner())
}

fn run(ast: AstModule, globals: &Globals, calls: &Calls, ticks: u64) -> starlark::Result<()> {
    Module::with_temp_heap(|module| {
        let mut evaluator = Evaluator::new(&module);
        evaluator.extra = Some(calls);
        evaluator
            .set_max_callstack_size(MAX_CALLS)
            .and_then(|()| evaluator.set_max_heap_size(MAX_HEAP))
            .and_then(|()| evaluator.set_max_tick_count(ticks))
            .map_err(starlark::Error::new_other)?;
        evaluator.before_stmt_for_dap(BeforeStmtFunc::from_dyn(Box::new(Bounds::default())));
        let done = evaluator.eval_module(ast, globals).map(|_| ());
        let heap = evaluator.heap().allocated_bytes();
        if heap > MAX_HEAP || evaluator.get_total_tick_count() >= ticks {
            calls.meter.spend();
        }
        done
    })
}

/// The language, and the same with the meter.
struct Language {
    plain: Globals,
    measuring: Globals,
}

impl Language {
    fn new() -> Self {
        let plain = || GlobalsBuilder::standard().with(builtins::rules_module);
        Self {
            plain: plain().build(),
            measuring: plain().with(builtins::meter_module).build(),
        }
    }
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
            if let Some(calls) = evaluator
                .extra
                .and_then(|extra| extra.downcast_ref::<Calls>())
            {
                calls.meter.spend();
            }
            return Err(starlark::Error::new_other(RulesError::Endless));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
