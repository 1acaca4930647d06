//! Compiles `.rules` files into a [`RuleSet`], once, when the policy is sealed. No other module
//! knows Starlark.
//!
//! A stranger's file may be compiled here, so everything is bounded: bytes, nesting, steps,
//! memory, call depth.

mod builtins;
mod error;
mod examples;
mod listing;
mod meter;
mod nesting_limits;

use starlark::codemap::FileSpanRef;
use starlark::environment::{Globals, GlobalsBuilder, Module};
use starlark::eval::{BeforeStmtFunc, BeforeStmtFuncDyn, Evaluator};
use starlark::syntax::{AstModule, Dialect};

use crate::codex_check::{HostExecutables, ProgramPathBaseFolders};
use crate::rule_set::RuleSet;
use builtins::{CollectedRuleCalls, RuleFileStatement, RulesBuiltinCall};
pub use error::RulesCompileError;
pub use examples::RuleExample;
use examples::RuleExampleTestBudget;
pub use listing::{ListedRule, RulesFileListing, RulesListingEntry};
use meter::RulesInstrumentationOutcome;

/// Bytes of one rules file.
const MAX_FILE: usize = 1 << 20;
/// Function calls and loop rounds of one file; 10,000 generated rules take 20,000.
const MAX_TICKS: u64 = 200_000;
/// The same for a measured file, where each measured value is one more call.
const MAX_TICKS_MEASURED: u64 = 4 * MAX_TICKS;
/// Statements of one file.
const MAX_STATEMENTS: u64 = 200_000;
/// Bytes of values of one file.
const MAX_HEAP: usize = 64 << 20;
/// Bytes of rules of all files, each first word with all that may follow it.
const MAX_RULES: usize = 16 << 20;
/// Frames of the Starlark call stack.
const MAX_CALLS: usize = 50;
/// Stack of the thread that compiles. The AST is walked and dropped recursively; `nesting_limits`
/// keeps it shallow enough for this, also where `meter` makes two levels out of one.
const STACK: usize = 256 << 20;

/// Compiles rule files, in this order, into one rule set.
///
/// # Errors
/// Returns the first thing that is wrong, with file and line; also an example that does not hold.
pub fn compile_execpolicy_rules_files(
    files: &[(&str, &str)],
) -> Result<RuleSet, RulesCompileError> {
    compile_rules_with_base_folder(files, &ProgramPathBaseFolders::default())
}

/// Does the same with this folder as the start of relative programs in examples.
///
/// # Errors
/// As those of [`compile_execpolicy_rules_files`].
pub fn compile_rules_with_base_folder(
    files: &[(&str, &str)],
    from: &ProgramPathBaseFolders,
) -> Result<RuleSet, RulesCompileError> {
    // Other blanks are errors in the language, so they are left to the parser.
    let is_blank = |text: &str| text.bytes().all(|byte| matches!(byte, b' ' | b'\n'));
    if files.iter().all(|(_, text)| is_blank(text)) {
        return Ok(RuleSet::default());
    }
    let wrong = |file: &str, line, tried: &[RuleExample]| match examples::failed_rule_examples_text(
        tried,
    ) {
        None => Ok(()),
        Some(what) => Err(RulesCompileError::Rule {
            file: file.to_owned(),
            line,
            what,
        }),
    };
    run_on_large_stack(|| Ok(compile_rule_files(files, from, wrong)?.0))
}

/// Compiles rule files, and lists what they say call by call, with their examples tried.
///
/// # Errors
/// Returns the first thing that is wrong, with file and line. An example that does not hold is no
/// error here.
pub fn compile_and_list_rules(
    files: &[(&str, &str)],
    from: &ProgramPathBaseFolders,
) -> Result<(RuleSet, Vec<RulesFileListing>), RulesCompileError> {
    run_on_large_stack(|| compile_rule_files(files, from, |_, _, _| Ok(())))
}

fn run_on_large_stack<T: Send>(
    work: impl FnOnce() -> Result<T, RulesCompileError> + Send,
) -> Result<T, RulesCompileError> {
    std::thread::scope(|scope| {
        let work = std::thread::Builder::new()
            .name("rules".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, work)
            .map_err(RulesCompileError::Thread)?;
        // A panic of the evaluator means a bad file; it must not end this process.
        work.join().unwrap_or(Err(RulesCompileError::Crash))
    })
}

/// Compiles the files in order. `judge` sees the examples of each call after its file was
/// evaluated.
fn compile_rule_files(
    files: &[(&str, &str)],
    from: &ProgramPathBaseFolders,
    judge: impl Fn(&str, usize, &[RuleExample]) -> Result<(), RulesCompileError>,
) -> Result<(RuleSet, Vec<RulesFileListing>), RulesCompileError> {
    let language = StarlarkGlobals::new();
    let mut rules = Vec::new();
    let mut hosts = HostExecutables::new();
    let mut network = Vec::new();
    let mut listings = Vec::new();
    let mut room = MAX_RULES;
    let mut trials = RuleExampleTestBudget::default();
    for (name, text) in files {
        let calls = collect_rules_file_calls(name, text, &language, &mut room)?;
        // Examples use all paths that the file declares, wherever it declares them.
        for call in &calls {
            if let RuleFileStatement::Host { name, paths } = &call.rule {
                hosts.insert(name.clone(), paths.clone());
            }
        }
        let mut entries = Vec::with_capacity(calls.len());
        for call in calls {
            let says = match call.rule {
                RuleFileStatement::Rules {
                    rules: own,
                    examples,
                } => {
                    // Examples are tried against the rules of their own call only.
                    let made = RuleSet::new(own);
                    let tried = examples.results_of_rule_examples(&made, &hosts, from, &mut trials);
                    let tried = tried.ok_or_else(|| RulesCompileError::Rule {
                        file: (*name).to_owned(),
                        line: call.line,
                        what: "its examples take too long to be tried: fewer, or shorter lists"
                            .to_owned(),
                    })?;
                    judge(name, call.line, &tried)?;
                    let own = made.into_prefix_rules();
                    let says = ListedRule::listed_from_prefix_rule_call(&own, tried);
                    rules.extend(own);
                    says
                }
                RuleFileStatement::Host { name, paths } => ListedRule::Host { name, paths },
                RuleFileStatement::Network(rule) => {
                    network.push(rule.clone());
                    ListedRule::Network(rule)
                }
            };
            entries.push(RulesListingEntry {
                line: call.line,
                rule: says,
            });
        }
        listings.push(RulesFileListing {
            file: (*name).to_owned(),
            entries,
        });
    }
    Ok((
        RuleSet::new(rules).with_executables_and_network_rules(hosts, network),
        listings,
    ))
}

/// Returns the calls of one file, in order.
fn collect_rules_file_calls(
    name: &str,
    text: &str,
    globals: &StarlarkGlobals,
    room: &mut usize,
) -> Result<Vec<RulesBuiltinCall>, RulesCompileError> {
    if text.len() > MAX_FILE {
        return Err(RulesCompileError::TooLarge {
            file: name.to_owned(),
            limit: MAX_FILE,
        });
    }
    // This comes before parsing, since dropping a deep syntax tree would overflow the stack.
    nesting_limits::check_rules_text_complexity(text).map_err(|line| {
        RulesCompileError::TooComplex {
            file: name.to_owned(),
            line,
        }
    })?;
    let dialect = Dialect {
        enable_f_strings: true,
        ..Dialect::Extended
    };
    let parse = |text: &str| AstModule::parse(name, text.to_owned(), &dialect);
    let ast = parse(text).map_err(|error| RulesCompileError::from_starlark_error(name, &error))?;
    match meter::instrument_rules_with_meter(text, &ast) {
        RulesInstrumentationOutcome::Unchanged => {}
        RulesInstrumentationOutcome::ReservedName(at) => {
            let before = text.get(..at).unwrap_or_default();
            return Err(RulesCompileError::Rule {
                file: name.to_owned(),
                line: before.matches('\n').count() + 1,
                what: format!(
                    "`{}` is no name that a rules file may use",
                    meter::METER_NAME
                ),
            });
        }
        RulesInstrumentationOutcome::Text(measured) => {
            // A file that cannot be measured is not run.
            let ast = parse(&measured).map_err(|_| RulesCompileError::TooComplex {
                file: name.to_owned(),
                line: 1,
            })?;
            let calls = CollectedRuleCalls::rule_calls_with_byte_budget(*room);
            // Any other error occurs again below, where it is reported with the file's own text.
            if let Err(error) =
                run_starlark_module(ast, &globals.measuring, &calls, MAX_TICKS_MEASURED)
                && calls.meter.is_rules_evaluation_exhausted()
            {
                return Err(RulesCompileError::from_starlark_error(name, &error));
            }
        }
    }
    let calls = CollectedRuleCalls::rule_calls_with_byte_budget(*room);
    run_starlark_module(ast, &globals.plain, &calls, MAX_TICKS)
        .map_err(|error| RulesCompileError::from_starlark_error(name, &error))?;
    *room = calls.byte_budget.get();
    Ok(calls.calls.into_inner())
}

fn run_starlark_module(
    ast: AstModule,
    globals: &Globals,
    calls: &CollectedRuleCalls,
    ticks: u64,
) -> starlark::Result<()> {
    Module::with_temp_heap(|module| {
        let mut evaluator = Evaluator::new(&module);
        evaluator.extra = Some(calls);
        evaluator
            .set_max_callstack_size(MAX_CALLS)
            .and_then(|()| evaluator.set_max_heap_size(MAX_HEAP))
            .and_then(|()| evaluator.set_max_tick_count(ticks))
            .map_err(starlark::Error::new_other)?;
        evaluator.before_stmt_for_dap(BeforeStmtFunc::from_dyn(Box::new(
            StarlarkStatementLimiter::default(),
        )));
        let done = evaluator.eval_module(ast, globals).map(|_| ());
        // The evaluator checks its limits only now and then, so they are compared once more at the
        // end.
        let heap = evaluator.heap().allocated_bytes();
        if heap > MAX_HEAP || evaluator.get_total_tick_count() >= ticks {
            calls.meter.mark_rules_evaluation_exhausted();
        }
        done
    })
}

/// The globals of the language, without and with the meter.
struct StarlarkGlobals {
    plain: Globals,
    measuring: Globals,
}

impl StarlarkGlobals {
    fn new() -> Self {
        let plain = || GlobalsBuilder::standard().with(builtins::register_rule_builtins);
        Self {
            plain: plain().build(),
            measuring: plain().with(builtins::register_starlark_size_meter).build(),
        }
    }
}

/// Checks limits before each statement. The evaluator checks its own only every thousand loop
/// rounds or calls, which forty lines of `s = s + s` never reach.
#[derive(Default)]
struct StarlarkStatementLimiter {
    statements: u64,
}

impl<'e> BeforeStmtFuncDyn<'e> for StarlarkStatementLimiter {
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
                .and_then(|extra| extra.downcast_ref::<CollectedRuleCalls>())
            {
                calls.meter.mark_rules_evaluation_exhausted();
            }
            return Err(starlark::Error::new_other(RulesCompileError::LimitExceeded));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
