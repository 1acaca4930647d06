//! Bounds single steps of the evaluator. It counts its own steps and memory, but one step may be
//! `[0] * 1000000000`, or compare lists that contain one another forty levels deep.
//!
//! A file that computes is therefore evaluated twice: first with every value measured on its way
//! into an operation and, if none was too large, as it is. The result of the first time is
//! discarded.

use std::cell::Cell;

use starlark::codemap::Span;
use starlark::syntax::AstModule;
use starlark::syntax::ast::{
    ArgumentP, AssignOp, AssignTargetP, AstExpr, AstLiteral, AstNoPayload, AstStmt, BinOp, ClauseP,
    ExprP, ForClauseP, ParameterP, StmtP,
};
use starlark::values::Value;
use starlark::values::dict::DictRef;
use starlark::values::list::ListRef;
use starlark::values::tuple::TupleRef;

/// The name of the measuring function; a file that uses this name is refused.
pub(super) const METER_NAME: &str = "__meter";
/// Size of one value: its characters, its items and their contents.
const MAX_VALUE: u64 = 300_000;
/// Size of all measured values together.
const MAX_WORK: u64 = 20_000_000;
/// How often something may be repeated, and the size of what is repeated.
const MAX_TIMES: i32 = 10_000;
const MAX_REPEATED: u64 = 1_000;
/// Size of a text that others are put into, and of each of those.
const MAX_TEXT: u64 = 8_000;
const MAX_PART: u64 = 32_000;
/// A text literal longer than this is measured as well.
const LONG_LITERAL: u32 = 1_000;

/// What a value is about to be used for.
#[derive(Clone, Copy)]
enum MeteredValueUse {
    Any,
    Factor,
    Text,
    Part,
}

const VALUE_USES: [MeteredValueUse; 4] = [
    MeteredValueUse::Any,
    MeteredValueUse::Factor,
    MeteredValueUse::Text,
    MeteredValueUse::Part,
];

/// What was measured so far.
#[derive(Debug, Default)]
pub(super) struct EvaluationMeter {
    work: Cell<u64>,
    exhausted: Cell<bool>,
}

impl EvaluationMeter {
    /// Returns whether something was too large.
    pub(super) fn is_rules_evaluation_exhausted(&self) -> bool {
        self.exhausted.get()
    }

    /// Records that the evaluator's own bounds were met.
    pub(super) fn mark_rules_evaluation_exhausted(&self) {
        self.exhausted.set(true);
    }

    /// Returns whether a value may be used in this way; `heap` is the memory of all values.
    pub(super) fn is_starlark_value_small_enough(
        &self,
        value: Value<'_>,
        number: i32,
        heap: usize,
    ) -> bool {
        // A number that is not known is bounded as a factor.
        let usage = usize::try_from(number)
            .ok()
            .and_then(|number| VALUE_USES.get(number))
            .copied()
            .unwrap_or(MeteredValueUse::Factor);
        let limit = match usage {
            MeteredValueUse::Any => MAX_VALUE,
            MeteredValueUse::Factor => MAX_REPEATED,
            MeteredValueUse::Text => MAX_TEXT,
            MeteredValueUse::Part => MAX_PART,
        };
        let size = starlark_value_size(value, limit);
        self.work.set(self.work.get().saturating_add(size));
        let times = match (usage, value.get_type()) {
            (MeteredValueUse::Factor, "int") => value
                .unpack_i32()
                .is_some_and(|number| (-MAX_TIMES..=MAX_TIMES).contains(&number)),
            _ => true,
        };
        let fits = times && size <= limit && self.work.get() <= MAX_WORK && heap <= super::MAX_HEAP;
        self.exhausted.set(self.exhausted.get() || !fits);
        fits
    }
}

/// Returns the size of a value when it is written out; counting ends above `limit`.
fn starlark_value_size(value: Value<'_>, limit: u64) -> u64 {
    let mut size = 0_u64;
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        // Empty values count as well, or a list of many of them would have no size.
        size = size.saturating_add(1);
        if let Some(text) = value.unpack_str() {
            size = size.saturating_add(text.len() as u64);
        } else if let Some(list) = ListRef::from_value(value) {
            size = size.saturating_add(queue_nested_starlark_values(&mut rest, list.iter(), limit));
        } else if let Some(tuple) = TupleRef::from_value(value) {
            size =
                size.saturating_add(queue_nested_starlark_values(&mut rest, tuple.iter(), limit));
        } else if let Some(dict) = DictRef::from_value(value) {
            let pairs = dict.iter().flat_map(|(key, value)| [key, value]);
            size = size.saturating_add(queue_nested_starlark_values(&mut rest, pairs, limit));
        } else if value.get_type() == "range" {
            // A range holds no items itself, but an operation may make a list of it.
            size = size
                .saturating_add(u64::try_from(value.length().unwrap_or(i32::MAX)).unwrap_or(limit));
        }
        if size > limit {
            break;
        }
    }
    size
}

/// Queues the contents of a value, at most `limit` of them. Counting something twice errs on the
/// safe side.
fn queue_nested_starlark_values<'v>(
    rest: &mut Vec<Value<'v>>,
    values: impl Iterator<Item = Value<'v>>,
    limit: u64,
) -> u64 {
    let before = rest.len();
    rest.extend(values.take(usize::try_from(limit).unwrap_or(usize::MAX)));
    (rest.len() - before) as u64
}

/// The text of a file as it is evaluated first.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RulesInstrumentationOutcome {
    /// There is nothing to measure: it only calls our own functions, or functions of its own,
    /// with what it spells out.
    Unchanged,
    /// The text with every value measured.
    Text(String),
    /// The file uses the meter's name at this byte, by which it could bypass the meter.
    ReservedName(usize),
}

pub(super) fn instrument_rules_with_meter(
    text: &str,
    module: &AstModule,
) -> RulesInstrumentationOutcome {
    let mut places = StarlarkMeterInserter::new(text);
    places.insert_meter_calls_in_statement(module.statement());
    // A file that computes nothing is not measured, so the name does no harm in it.
    match places.names_meter {
        _ if !places.computes => RulesInstrumentationOutcome::Unchanged,
        Some(at) => RulesInstrumentationOutcome::ReservedName(at),
        None => RulesInstrumentationOutcome::Text(places.text_with_meter_inserted(0, text.len())),
    }
}

/// Returns the text between two places, with the insertions applied.
fn apply_insertions(
    text: &str,
    inserts: &mut [SourceInsertion],
    begin: usize,
    end: usize,
) -> String {
    inserts.sort_by_key(|insert| (insert.at, insert.opens));
    let mut measured = String::with_capacity((end - begin) * 2);
    let mut done = begin;
    for insert in inserts.iter() {
        let piece = text.get(done..insert.at).unwrap_or_default();
        measured.push_str(piece);
        done = insert.at;
        // `return"x"` must stay two words.
        let before = text
            .get(..done)
            .and_then(|before| before.chars().next_back());
        if insert.opens && before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            measured.push(' ');
        }
        measured.push_str(&insert.text);
    }
    measured.push_str(text.get(done..end).unwrap_or_default());
    measured
}

/// What is put in, and where.
struct SourceInsertion {
    at: usize,
    /// Whether it opens something. At the same place, what closes goes before what opens.
    opens: bool,
    text: String,
}

struct StarlarkMeterInserter<'t> {
    text: &'t str,
    inserts: Vec<SourceInsertion>,
    /// Whether something is computed that the evaluator does in one step.
    computes: bool,
    /// Where something has the meter's name.
    names_meter: Option<usize>,
}

impl<'t> StarlarkMeterInserter<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            inserts: Vec::new(),
            computes: false,
            names_meter: None,
        }
    }

    fn text_with_meter_inserted(mut self, begin: usize, end: usize) -> String {
        apply_insertions(self.text, &mut self.inserts, begin, end)
    }

    fn note_use_of_reserved_name(&mut self, name: &str, span: Span) {
        if name == METER_NAME {
            self.names_meter.get_or_insert(span.begin().get() as usize);
        }
    }

    fn insert_text_before_span(&mut self, span: Span, text: String) {
        self.inserts.push(SourceInsertion {
            at: span.begin().get() as usize,
            opens: true,
            text,
        });
    }

    fn insert_text_after_span(&mut self, span: Span, text: String) {
        self.inserts.push(SourceInsertion {
            at: span.end().get() as usize,
            opens: false,
            text,
        });
    }

    fn insert_meter_calls_in_statement(&mut self, statement: &AstStmt) {
        match &statement.node {
            StmtP::Break | StmtP::Continue | StmtP::Pass | StmtP::Load(_) => {}
            StmtP::Return(value) => value
                .iter()
                .for_each(|value| self.meter_starlark_expression(value, MeteredValueUse::Any)),
            StmtP::Expression(value) => self.wrap_subexpressions_in_meter_calls(value),
            StmtP::Assign(assign) => {
                self.visit_starlark_assign_target(&assign.lhs.node, assign.lhs.span);
                self.meter_starlark_expression(&assign.rhs, MeteredValueUse::Any);
            }
            StmtP::AssignModify(target, op, value) => {
                self.computes = true;
                // Factors multiply a size, so they are bounded more tightly than other operands.
                let (left, right) = match op {
                    AssignOp::Multiply | AssignOp::LeftShift => {
                        (MeteredValueUse::Factor, MeteredValueUse::Factor)
                    }
                    AssignOp::Percent => (MeteredValueUse::Text, MeteredValueUse::Part),
                    AssignOp::Add
                    | AssignOp::Subtract
                    | AssignOp::Divide
                    | AssignOp::FloorDivide
                    | AssignOp::BitAnd
                    | AssignOp::BitOr
                    | AssignOp::BitXor
                    | AssignOp::RightShift => (MeteredValueUse::Any, MeteredValueUse::Any),
                };
                // A call cannot be put around the target, so a statement before it measures its
                // value.
                let (begin, end) = (target.span.begin().get(), target.span.end().get());
                // The copy of the target is measured inside as well, or it could compute without
                // being measured.
                let mut inner = StarlarkMeterInserter::new(self.text);
                inner.visit_starlark_assign_target(&target.node, target.span);
                let name = inner.text_with_meter_inserted(begin as usize, end as usize);
                let before = format!("{METER_NAME}(({name}), {}); ", left as i32);
                self.insert_text_before_span(target.span, before);
                self.visit_starlark_assign_target(&target.node, target.span);
                self.meter_starlark_expression(value, right);
            }
            StmtP::Statements(statements) => statements
                .iter()
                .for_each(|one| self.insert_meter_calls_in_statement(one)),
            StmtP::If(condition, then) => {
                self.wrap_subexpressions_in_meter_calls(condition);
                self.insert_meter_calls_in_statement(then);
            }
            StmtP::IfElse(condition, branches) => {
                self.wrap_subexpressions_in_meter_calls(condition);
                self.insert_meter_calls_in_statement(&branches.0);
                self.insert_meter_calls_in_statement(&branches.1);
            }
            StmtP::For(each) => {
                self.visit_starlark_assign_target(&each.var.node, each.var.span);
                self.meter_starlark_expression(&each.over, MeteredValueUse::Any);
                self.insert_meter_calls_in_statement(&each.body);
            }
            StmtP::Def(def) => {
                self.note_use_of_reserved_name(&def.name.node.ident, def.name.span);
                def.params
                    .iter()
                    .for_each(|one| self.wrap_parameter_default_in_meter(&one.node));
                self.insert_meter_calls_in_statement(&def.body);
            }
        }
    }

    /// Visits the target of an assignment. Nothing can be put around it, only into it.
    fn visit_starlark_assign_target(&mut self, target: &AssignTargetP<AstNoPayload>, span: Span) {
        match target {
            AssignTargetP::Identifier(name) => {
                self.note_use_of_reserved_name(&name.node.ident, span)
            }
            AssignTargetP::Dot(object, _) => self.wrap_subexpressions_in_meter_calls(object),
            AssignTargetP::Tuple(targets) => {
                targets.iter().for_each(|target| {
                    self.visit_starlark_assign_target(&target.node, target.span)
                });
            }
            AssignTargetP::Index(pair) => {
                self.wrap_subexpressions_in_meter_calls(&pair.0);
                self.meter_starlark_expression(&pair.1, MeteredValueUse::Any);
            }
        }
    }

    fn wrap_parameter_default_in_meter(&mut self, parameter: &ParameterP<AstNoPayload>) {
        match parameter {
            ParameterP::Slash | ParameterP::NoArgs => {}
            ParameterP::Normal(name, _, default) => {
                self.note_use_of_reserved_name(&name.node.ident, name.span);
                // Defaults are computed where the function is defined, not where it is called.
                default
                    .iter()
                    .for_each(|value| self.meter_starlark_expression(value, MeteredValueUse::Any));
            }
            ParameterP::Args(name, _) | ParameterP::KwArgs(name, _) => {
                self.note_use_of_reserved_name(&name.node.ident, name.span);
            }
        }
    }

    /// Measures an expression whose value goes into an operation.
    fn meter_starlark_expression(&mut self, expression: &AstExpr, usage: MeteredValueUse) {
        // A short literal is small enough by itself. As a factor even a short number can be too
        // large.
        if let ExprP::Literal(literal) = &expression.node {
            let length = expression.span.end().get() - expression.span.begin().get();
            let small = !matches!(literal, AstLiteral::String(_)) || length < LONG_LITERAL;
            if small && !matches!(usage, MeteredValueUse::Factor) {
                return;
            }
        }
        self.insert_text_before_span(expression.span, format!("{METER_NAME}(("));
        self.wrap_subexpressions_in_meter_calls(expression);
        self.insert_text_after_span(expression.span, format!("), {})", usage as i32));
    }

    /// Measures the parts of an expression.
    fn wrap_subexpressions_in_meter_calls(&mut self, expression: &AstExpr) {
        match &expression.node {
            ExprP::Identifier(name) => {
                self.note_use_of_reserved_name(&name.node.ident, expression.span)
            }
            ExprP::Literal(_) => {}
            ExprP::Tuple(items) | ExprP::List(items) => {
                items
                    .iter()
                    .for_each(|item| self.meter_starlark_expression(item, MeteredValueUse::Any));
            }
            ExprP::Dict(pairs) => {
                for (key, value) in pairs {
                    self.meter_starlark_expression(key, MeteredValueUse::Any);
                    self.meter_starlark_expression(value, MeteredValueUse::Any);
                }
            }
            ExprP::Dot(object, _) => {
                self.computes = true;
                self.meter_starlark_expression(object, MeteredValueUse::Any);
            }
            ExprP::Call(called, arguments) => {
                let usage = self.visit_callee(called);
                for argument in &arguments.args {
                    match &argument.node {
                        ArgumentP::Positional(value)
                        | ArgumentP::Named(_, value)
                        | ArgumentP::Args(value)
                        | ArgumentP::KwArgs(value) => self.meter_starlark_expression(value, usage),
                    }
                }
            }
            ExprP::Index(pair) => {
                self.wrap_subexpressions_in_meter_calls(&pair.0);
                self.meter_starlark_expression(&pair.1, MeteredValueUse::Any);
            }
            ExprP::Index2(triple) => {
                self.wrap_subexpressions_in_meter_calls(&triple.0);
                self.meter_starlark_expression(&triple.1, MeteredValueUse::Any);
                self.meter_starlark_expression(&triple.2, MeteredValueUse::Any);
            }
            // A slice copies its part of the object in one step.
            ExprP::Slice(object, from, to, step) => {
                self.computes = true;
                self.meter_starlark_expression(object, MeteredValueUse::Any);
                for bound in [from, to, step].into_iter().flatten() {
                    self.wrap_subexpressions_in_meter_calls(bound);
                }
            }
            ExprP::Lambda(lambda) => {
                lambda
                    .params
                    .iter()
                    .for_each(|one| self.wrap_parameter_default_in_meter(&one.node));
                self.meter_starlark_expression(&lambda.body, MeteredValueUse::Any);
            }
            ExprP::Not(value) | ExprP::Minus(value) | ExprP::Plus(value) | ExprP::BitNot(value) => {
                self.wrap_subexpressions_in_meter_calls(value);
            }
            ExprP::Op(left, op, right) => {
                self.computes = true;
                let (left_use, right_use) = match op {
                    BinOp::Multiply | BinOp::LeftShift => {
                        (MeteredValueUse::Factor, MeteredValueUse::Factor)
                    }
                    BinOp::Percent => (MeteredValueUse::Text, MeteredValueUse::Part),
                    _ => (MeteredValueUse::Any, MeteredValueUse::Any),
                };
                self.meter_starlark_expression(left, left_use);
                self.meter_starlark_expression(right, right_use);
            }
            ExprP::If(three) => {
                self.wrap_subexpressions_in_meter_calls(&three.0);
                self.wrap_subexpressions_in_meter_calls(&three.1);
                self.wrap_subexpressions_in_meter_calls(&three.2);
            }
            ExprP::ListComprehension(item, first, rest) => {
                self.meter_starlark_expression(item, MeteredValueUse::Any);
                self.visit_comprehension_clauses(first, rest);
            }
            ExprP::DictComprehension(pair, first, rest) => {
                self.meter_starlark_expression(&pair.0, MeteredValueUse::Any);
                self.meter_starlark_expression(&pair.1, MeteredValueUse::Any);
                self.visit_comprehension_clauses(first, rest);
            }
            ExprP::FString(text) => {
                self.computes = true;
                // Nothing can be put into the text, so its values are measured before it.
                let mut before = String::from("[");
                for value in &text.expressions {
                    if let ExprP::Identifier(name) = &value.node {
                        self.note_use_of_reserved_name(&name.node.ident, expression.span);
                        before.push_str(&format!(
                            "{METER_NAME}({}, {}), ",
                            name.node.ident,
                            MeteredValueUse::Part as i32
                        ));
                    }
                }
                // The list evaluates the measuring calls first, and its last item is the text.
                self.insert_text_before_span(expression.span, before);
                self.insert_text_after_span(expression.span, "][-1]".to_owned());
            }
        }
    }

    fn visit_comprehension_clauses(
        &mut self,
        first: &ForClauseP<AstNoPayload>,
        rest: &[ClauseP<AstNoPayload>],
    ) {
        self.visit_comprehension_clause(first);
        for clause in rest {
            match clause {
                ClauseP::For(each) => self.visit_comprehension_clause(each),
                ClauseP::If(condition) => self.wrap_subexpressions_in_meter_calls(condition),
            }
        }
    }

    fn visit_comprehension_clause(&mut self, each: &ForClauseP<AstNoPayload>) {
        self.visit_starlark_assign_target(&each.var.node, each.var.span);
        self.meter_starlark_expression(&each.over, MeteredValueUse::Any);
    }

    /// Visits what is called; returns how its arguments will be used.
    fn visit_callee(&mut self, called: &AstExpr) -> MeteredValueUse {
        match &called.node {
            ExprP::Identifier(name) => {
                self.note_use_of_reserved_name(&name.node.ident, called.span);
                // Our own functions reserve room for what they keep, so they need no measuring.
                let ours = ["prefix_rule", "host_executable", "network_rule"];
                self.computes |= !ours.contains(&name.node.ident.as_str());
                MeteredValueUse::Any
            }
            ExprP::Dot(object, method) => {
                self.computes = true;
                // These methods can repeat their arguments in the text any number of times.
                let fills = ["format", "join", "replace"].contains(&method.node.as_str());
                let (own, arguments) = match fills {
                    true => (MeteredValueUse::Text, MeteredValueUse::Part),
                    false => (MeteredValueUse::Any, MeteredValueUse::Any),
                };
                self.meter_starlark_expression(object, own);
                arguments
            }
            _ => {
                self.computes = true;
                self.wrap_subexpressions_in_meter_calls(called);
                MeteredValueUse::Any
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use starlark::syntax::Dialect;

    use super::*;

    fn measuring(text: &str) -> RulesInstrumentationOutcome {
        let dialect = Dialect {
            enable_f_strings: true,
            ..Dialect::Extended
        };
        let module = AstModule::parse("t", text.to_owned(), &dialect).unwrap();
        instrument_rules_with_meter(text, &module)
    }

    #[test]
    fn what_only_spells_rules_out_is_evaluated_once() {
        for text in [
            "prefix_rule(['a', ['b', 'c']], match=['a b'])",
            "x = ['a', 'b']\nfor n in x:\n    if n:\n        prefix_rule([n])",
        ] {
            assert_eq!(
                measuring(text),
                RulesInstrumentationOutcome::Unchanged,
                "{text}"
            );
        }
    }

    #[test]
    fn values_are_measured_on_their_way_in() {
        let check = |text: &str, expected: &str| {
            let expected = expected.replace('~', METER_NAME);
            assert_eq!(measuring(text), RulesInstrumentationOutcome::Text(expected));
        };
        check("x = a * b", "x = ~((~((a), 1) * ~((b), 1)), 0)");
        check("x += y", "~((x), 0); x += ~((y), 0)");
        check("if x: x *= 2", "if x: ~((x), 1); x *= ~((2), 1)");
        check("a.b(c, d=e)", "~((a), 0).b(~((c), 0), d=~((e), 0))");
        check("'x'.join(a)", "'x'.join(~((a), 3))");
        check(
            "def f():\n  return[a for a in b if a+1]",
            "def f():\n  return ~(([~((a), 0) for a in ~((b), 0) if ~((a), 0)+1]), 0)",
        );
        check(
            "x = f'{a}{b}'",
            "x = ~(([~(a, 3), ~(b, 3), f'{a}{b}'][-1]), 0)",
        );
        check("x = 1, y + 2", "x = ~((1, ~((~((y), 0) + 2), 0)), 0)");
        check(
            "a[b + c] += d",
            "~((a[~((~((b), 0) + ~((c), 0)), 0)]), 0); a[~((~((b), 0) + ~((c), 0)), 0)] += ~((d), 0)",
        );
        check(
            "def f(a, b=[c] * 2): pass",
            "def f(a, b=~((~(([~((c), 0)]), 1) * ~((2), 1)), 0)): pass",
        );
        check(
            "x = [a for b[c] in d + e]",
            "x = ~(([~((a), 0) for b[~((c), 0)] in ~((~((d), 0) + ~((e), 0)), 0)]), 0)",
        );
    }
}
