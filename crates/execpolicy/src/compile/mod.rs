//! `.rules` files → [`RuleSet`], once, when the policy is sealed: the only place
//! that knows Starlark. A stranger's file may be compiled here, so everything is
//! bounded: bytes, nesting, steps, memory, call depth.

mod bounds;
mod builtins;
mod error;

use std::cell::RefCell;

use starlark::codemap::FileSpanRef;
use starlark::environment::{Globals, GlobalsBuilder, Module};
use starlark::eval::{BeforeStmtFunc, BeforeStmtFuncDyn, Evaluator};
use starlark::syntax::{AstModule, Dialect};

use crate::rules::RuleSet;
use builtins::Call;
pub use error::RulesError;

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
/// The first thing that is wrong, with file and line.
pub fn compile(files: &[(&str, &str)]) -> Result<RuleSet, RulesError> {
    if files.iter().all(|(_, text)| text.trim().is_empty()) {
        return Ok(RuleSet::default());
    }
    std::thread::scope(|scope| {
        let work = std::thread::Builder::new()
            .name("rules".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, || compile_all(files))
            .map_err(RulesError::Thread)?;
        // A panic of the evaluator is a bad file, not a crash of ours.
        work.join().unwrap_or(Err(RulesError::Crash))
    })
}

fn compile_all(files: &[(&str, &str)]) -> Result<RuleSet, RulesError> {
    let globals = GlobalsBuilder::standard()
        .with(builtins::rules_module)
        .build();
    let mut rules = Vec::new();
    for (name, text) in files {
        for call in evaluate(name, text, &globals)? {
            let made = RuleSet::new(call.rules);
            call.examples
                .check(&made)
                .map_err(|what| RulesError::Rule {
                    file: (*name).to_owned(),
                    line: call.line,
                    what,
                })?;
            rules.extend(made.into_rules());
        }
    }
    Ok(RuleSet::new(rules))
}

/// The `prefix_rule` calls of one file, in order.
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
