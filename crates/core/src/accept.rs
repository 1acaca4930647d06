//! The `accept` expression: which verifiers must pass, as in `tests and (lint or typecheck) and 2
//! of (a, b, c)`.
//!
//! `and` binds tighter than `or`, and there is no `not`. The expression is evaluated in three
//! values (Kleene's strong logic): an open verdict stays open until it can no longer matter.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::VerifierName;

/// Three-valued truth. The order makes `and` a minimum and `or` a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TruthValue {
    /// It does not hold.
    False,
    /// Not known yet, or left to a person.
    Open,
    /// It holds.
    True,
}

/// A compiled `accept` expression.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AcceptExpr {
    /// One verifier.
    Verifier(VerifierName),
    /// All of them; empty is true.
    All(Vec<AcceptExpr>),
    /// Any of them; empty is false.
    Any(Vec<AcceptExpr>),
    /// At least so many of them.
    AtLeast(u32, Vec<AcceptExpr>),
}

impl AcceptExpr {
    /// Evaluates with `truth` for each name.
    pub fn evaluate(&self, truth: &impl Fn(&VerifierName) -> TruthValue) -> TruthValue {
        match self {
            AcceptExpr::Verifier(name) => truth(name),
            AcceptExpr::All(terms) => terms
                .iter()
                .map(|term| term.evaluate(truth))
                .min()
                .unwrap_or(TruthValue::True),
            AcceptExpr::Any(terms) => terms
                .iter()
                .map(|term| term.evaluate(truth))
                .max()
                .unwrap_or(TruthValue::False),
            AcceptExpr::AtLeast(needed, terms) => {
                let values: Vec<TruthValue> =
                    terms.iter().map(|term| term.evaluate(truth)).collect();
                let sure = values
                    .iter()
                    .filter(|value| **value == TruthValue::True)
                    .count();
                let possible = values
                    .iter()
                    .filter(|value| **value != TruthValue::False)
                    .count();
                let needed = *needed as usize;
                // Enough terms hold already, or too few can still hold. In between it depends on
                // the open ones.
                if sure >= needed {
                    TruthValue::True
                } else if possible < needed {
                    TruthValue::False
                } else {
                    TruthValue::Open
                }
            }
        }
    }

    /// Returns the expression with its terms sorted and duplicates removed.
    fn normalized_accept_expr(&self) -> Self {
        let all = |terms: &[AcceptExpr]| {
            let mut terms: Vec<AcceptExpr> = terms
                .iter()
                .map(AcceptExpr::normalized_accept_expr)
                .collect();
            terms.sort_unstable();
            terms
        };
        let once = |terms: &[AcceptExpr]| {
            let mut terms = all(terms);
            terms.dedup();
            terms
        };
        match self {
            AcceptExpr::Verifier(name) => AcceptExpr::Verifier(name.clone()),
            // `a and a` is `a`, so duplicates are dropped before expressions are compared.
            AcceptExpr::All(terms) => wrap_accept_terms_unless_single(once(terms), AcceptExpr::All),
            AcceptExpr::Any(terms) => wrap_accept_terms_unless_single(once(terms), AcceptExpr::Any),
            // Duplicates count in an `N of`, so they are kept here.
            AcceptExpr::AtLeast(needed, terms) => AcceptExpr::AtLeast(*needed, all(terms)),
        }
    }

    /// The verifiers it names.
    pub fn verifiers_in_accept_expression(&self) -> BTreeSet<&VerifierName> {
        let mut names = BTreeSet::new();
        self.collect_verifier_names(&mut names);
        names
    }

    fn collect_verifier_names<'a>(&'a self, names: &mut BTreeSet<&'a VerifierName>) {
        match self {
            AcceptExpr::Verifier(name) => {
                names.insert(name);
            }
            AcceptExpr::All(terms) | AcceptExpr::Any(terms) | AcceptExpr::AtLeast(_, terms) => {
                for term in terms {
                    term.collect_verifier_names(names);
                }
            }
        }
    }

    /// Parses the text of `accept`.
    ///
    /// # Errors
    /// Returns a syntax error, a name that is not in `known`, or an `N of` that can never hold.
    pub fn parse(
        text: &str,
        known: &BTreeSet<VerifierName>,
    ) -> Result<Self, AcceptExpressionError> {
        let tokens = tokenize_accept_expression(text)?;
        let mut parser = AcceptExpressionParser {
            tokens: &tokens,
            known,
            depth: 0,
        };
        let accept = parser.parse_disjunction()?;
        // Tokens that are left over are an error: `a b` must not be read as `a`.
        match parser.tokens.first() {
            None => Ok(accept),
            Some(token) => Err(AcceptExpressionError::Unexpected(token.to_string())),
        }
    }
}

/// Why an `accept` text cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcceptExpressionError {
    /// A token where it makes no sense.
    #[error("unexpected '{0}'")]
    Unexpected(String),
    /// The text ends too early.
    #[error("it ends where a verifier's name was expected")]
    Incomplete,
    /// A character no token begins with.
    #[error("unexpected character '{0}'")]
    Character(char),
    /// A name that no `[[verifier]]` has.
    #[error("no verifier is named '{0}'")]
    Unknown(String),
    /// `not` does not exist: a check that must fail is not a reason to accept.
    #[error("there is no 'not'; name what must pass")]
    Not,
    /// `N of (...)` with N of 0 or more than its terms.
    #[error("'{0} of' over {1} terms can never be meant: N must be between 1 and their number")]
    Impossible(u32, usize),
    /// One term twice in an `N of (...)`: a single pass would count as two.
    #[error("'{0}' stands twice in one 'N of (...)'; name each term once")]
    DuplicateTerm(String),
    /// Parentheses nested beyond reason.
    #[error("more than 64 levels of parentheses")]
    TooDeep,
}

fn tokenize_accept_expression(text: &str) -> Result<Vec<String>, AcceptExpressionError> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        // These characters make up a verifier's name. Numbers of `N of` are words, too.
        if c.is_alphanumeric() || matches!(c, '_' | '-' | '.') {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            tokens.push(std::mem::take(&mut word));
        }
        match c {
            '(' | ')' | ',' => tokens.push(c.to_string()),
            _ if c.is_whitespace() => {}
            _ => return Err(AcceptExpressionError::Character(c)),
        }
    }
    if !word.is_empty() {
        tokens.push(word);
    }
    Ok(tokens)
}

struct AcceptExpressionParser<'a> {
    tokens: &'a [String],
    known: &'a BTreeSet<VerifierName>,
    depth: u32,
}

impl AcceptExpressionParser<'_> {
    fn peek_token(&self) -> Option<&str> {
        self.tokens.first().map(String::as_str)
    }

    fn next_accept_expression_token(&mut self) -> Option<&str> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn expect_token(&mut self, wanted: &str) -> Result<(), AcceptExpressionError> {
        match self.next_accept_expression_token() {
            Some(token) if token == wanted => Ok(()),
            Some(token) => Err(AcceptExpressionError::Unexpected(token.to_owned())),
            None => Err(AcceptExpressionError::Incomplete),
        }
    }

    fn parse_disjunction(&mut self) -> Result<AcceptExpr, AcceptExpressionError> {
        let first = self.parse_accept_conjunction()?;
        let mut terms = vec![first];
        while self.peek_token() == Some("or") {
            self.next_accept_expression_token();
            terms.push(self.parse_accept_conjunction()?);
        }
        Ok(wrap_accept_terms_unless_single(terms, AcceptExpr::Any))
    }

    fn parse_accept_conjunction(&mut self) -> Result<AcceptExpr, AcceptExpressionError> {
        let first = self.parse_accept_term()?;
        let mut terms = vec![first];
        while self.peek_token() == Some("and") {
            self.next_accept_expression_token();
            terms.push(self.parse_accept_term()?);
        }
        Ok(wrap_accept_terms_unless_single(terms, AcceptExpr::All))
    }

    fn parse_accept_term(&mut self) -> Result<AcceptExpr, AcceptExpressionError> {
        // The parser is recursive. The bound keeps a hostile config from overflowing the stack.
        self.depth += 1;
        if self.depth > 64 {
            return Err(AcceptExpressionError::TooDeep);
        }
        let term = self.parse_accept_primary();
        self.depth -= 1;
        term
    }

    fn parse_accept_primary(&mut self) -> Result<AcceptExpr, AcceptExpressionError> {
        // Copied out, because the token borrows `self` mutably.
        let known = self.known;
        let token = self
            .next_accept_expression_token()
            .ok_or(AcceptExpressionError::Incomplete)?
            .to_owned();
        match token.as_str() {
            "(" => {
                let inner = self.parse_disjunction()?;
                self.expect_token(")")?;
                Ok(inner)
            }
            // Keywords cannot be names, not even where a verifier is called so.
            ")" | "," | "and" | "or" | "of" => Err(AcceptExpressionError::Unexpected(token)),
            "not" => Err(AcceptExpressionError::Not),
            // A word is a number only if `of` follows, so a verifier may be named `2`.
            _ if self.peek_token() == Some("of") => {
                let needed: u32 = token
                    .parse()
                    .map_err(|_| AcceptExpressionError::Unexpected(token.clone()))?;
                self.next_accept_expression_token();
                self.expect_token("(")?;
                let mut terms = vec![self.parse_disjunction()?];
                while self.peek_token() == Some(",") {
                    self.next_accept_expression_token();
                    terms.push(self.parse_disjunction()?);
                }
                self.expect_token(")")?;
                if needed == 0 || needed as usize > terms.len() {
                    return Err(AcceptExpressionError::Impossible(needed, terms.len()));
                }
                if let Some(twin) = find_duplicate_accept_term(&terms) {
                    let names: Vec<&str> = twin
                        .verifiers_in_accept_expression()
                        .iter()
                        .map(|name| name.as_str())
                        .collect();
                    return Err(AcceptExpressionError::DuplicateTerm(names.join(", ")));
                }
                Ok(AcceptExpr::AtLeast(needed, terms))
            }
            _ => {
                let name = VerifierName::new(token.as_str());
                if known.contains(&name) {
                    Ok(AcceptExpr::Verifier(name))
                } else {
                    Err(AcceptExpressionError::Unknown(token))
                }
            }
        }
    }
}

/// Returns a term that occurs again later, whatever the order of its own terms.
fn find_duplicate_accept_term(terms: &[AcceptExpr]) -> Option<&AcceptExpr> {
    let sorted: Vec<AcceptExpr> = terms
        .iter()
        .map(AcceptExpr::normalized_accept_expr)
        .collect();
    let again = |at: usize| {
        sorted
            .iter()
            .skip(at + 1)
            .any(|later| Some(later) == sorted.get(at))
    };
    terms
        .iter()
        .enumerate()
        .find(|(at, _)| again(*at))
        .map(|(_, term)| term)
}

fn wrap_accept_terms_unless_single(
    mut terms: Vec<AcceptExpr>,
    wrap: fn(Vec<AcceptExpr>) -> AcceptExpr,
) -> AcceptExpr {
    match terms.len() {
        1 => terms.remove(0),
        _ => wrap(terms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> BTreeSet<VerifierName> {
        ["a", "b", "c", "tests"]
            .into_iter()
            .map(VerifierName::from)
            .collect()
    }

    fn check(text: &str, truths: &str, expected: TruthValue) {
        let accept = AcceptExpr::parse(text, &known()).unwrap();
        let truth = |name: &VerifierName| {
            let at = ["a", "b", "c", "tests"]
                .iter()
                .position(|n| *n == name.as_str())
                .unwrap();
            match truths.as_bytes()[at] {
                b't' => TruthValue::True,
                b'f' => TruthValue::False,
                _ => TruthValue::Open,
            }
        };
        assert_eq!(accept.evaluate(&truth), expected, "{text} with {truths}");
    }

    #[test]
    fn three_values() {
        check("a and b", "tt--", TruthValue::True);
        check("a and b", "t?--", TruthValue::Open);
        check("a and b", "f?--", TruthValue::False);
        check("a or b", "f?--", TruthValue::Open);
        check("a or b and c", "tff-", TruthValue::True);
        check("(a or b) and c", "tff-", TruthValue::False);
        check("2 of (a, b, c)", "t?f-", TruthValue::Open);
        check("2 of (a, b, c)", "tft-", TruthValue::True);
        check("2 of (a, b, c)", "fft-", TruthValue::False);
        check("2 of (a and b, c, tests)", "tftt", TruthValue::True);
    }

    #[test]
    fn bad_texts_say_what_is_wrong() {
        let err = |text: &str| AcceptExpr::parse(text, &known()).unwrap_err().to_string();
        assert_eq!(err("a and nope"), "no verifier is named 'nope'");
        assert_eq!(err("not a"), "there is no 'not'; name what must pass");
        assert!(err("3 of (a, b)").contains("can never be meant"));
        assert!(err("0 of (a)").contains("can never be meant"));
        let twice = |names: &str| {
            format!("'{names}' stands twice in one 'N of (...)'; name each term once")
        };
        assert_eq!(err("2 of (a, a)"), twice("a"));
        assert_eq!(err("2 of (a, b, (a))"), twice("a"));
        assert_eq!(err("2 of (a and b, c, b and a)"), twice("a, b"));
        assert_eq!(err("2 of (a and a, a)"), twice("a"));
        assert_eq!(err("a and"), "it ends where a verifier's name was expected");
        assert_eq!(err("a b"), "unexpected 'b'");
        assert_eq!(err("a & b"), "unexpected character '&'");
        assert_eq!(err(&"(".repeat(100)), "more than 64 levels of parentheses");
    }
}
