//! What is required: `tests and (lint or typecheck) and 2 of (a, b, c)`.
//!
//! `and` binds tighter than `or`; there is no `not`. Evaluated in three values
//! (Kleene's strong logic): a verdict that is still open stays open until it can no
//! longer matter.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::VerifierName;

/// Three-valued truth. The order makes `and` a minimum and `or` a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
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
pub enum Accept {
    /// One verifier.
    Verifier(VerifierName),
    /// All of them; empty is true.
    All(Vec<Accept>),
    /// Any of them; empty is false.
    Any(Vec<Accept>),
    /// At least so many of them.
    AtLeast(u32, Vec<Accept>),
}

impl Accept {
    /// Evaluates with `truth` for each name.
    pub fn evaluate(&self, truth: &impl Fn(&VerifierName) -> Truth) -> Truth {
        match self {
            Accept::Verifier(name) => truth(name),
            Accept::All(terms) => terms
                .iter()
                .map(|term| term.evaluate(truth))
                .min()
                .unwrap_or(Truth::True),
            Accept::Any(terms) => terms
                .iter()
                .map(|term| term.evaluate(truth))
                .max()
                .unwrap_or(Truth::False),
            Accept::AtLeast(needed, terms) => {
                let values: Vec<Truth> = terms.iter().map(|term| term.evaluate(truth)).collect();
                let sure = values.iter().filter(|value| **value == Truth::True).count();
                let possible = values
                    .iter()
                    .filter(|value| **value != Truth::False)
                    .count();
                let needed = *needed as usize;
                if sure >= needed {
                    Truth::True
                } else if possible < needed {
                    Truth::False
                } else {
                    Truth::Open
                }
            }
        }
    }

    /// The same with its terms in an order of their own, each once.
    fn sorted(&self) -> Self {
        let all = |terms: &[Accept]| {
            let mut terms: Vec<Accept> = terms.iter().map(Accept::sorted).collect();
            terms.sort_unstable();
            terms
        };
        let once = |terms: &[Accept]| {
            let mut terms = all(terms);
            terms.dedup();
            terms
        };
        match self {
            Accept::Verifier(name) => Accept::Verifier(name.clone()),
            Accept::All(terms) => single_or(once(terms), Accept::All),
            Accept::Any(terms) => single_or(once(terms), Accept::Any),
            Accept::AtLeast(needed, terms) => Accept::AtLeast(*needed, all(terms)),
        }
    }

    /// The verifiers it names.
    pub fn names(&self) -> BTreeSet<&VerifierName> {
        let mut names = BTreeSet::new();
        self.collect(&mut names);
        names
    }

    fn collect<'a>(&'a self, names: &mut BTreeSet<&'a VerifierName>) {
        match self {
            Accept::Verifier(name) => {
                names.insert(name);
            }
            Accept::All(terms) | Accept::Any(terms) | Accept::AtLeast(_, terms) => {
                for term in terms {
                    term.collect(names);
                }
            }
        }
    }

    /// Reads the text of `accept`.
    ///
    /// # Errors
    /// A syntax error, a name that is not in `known`, or an `N of` that can never hold.
    pub fn parse(text: &str, known: &BTreeSet<VerifierName>) -> Result<Self, AcceptError> {
        let tokens = tokens(text)?;
        let mut parser = Parser {
            tokens: &tokens,
            known,
            depth: 0,
        };
        let accept = parser.any()?;
        match parser.tokens.first() {
            None => Ok(accept),
            Some(token) => Err(AcceptError::Unexpected(token.to_string())),
        }
    }
}

/// Why an `accept` text cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
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
    Twice(String),
    /// Parentheses nested beyond reason.
    #[error("more than 64 levels of parentheses")]
    TooDeep,
}

fn tokens(text: &str) -> Result<Vec<String>, AcceptError> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
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
            _ => return Err(AcceptError::Character(c)),
        }
    }
    if !word.is_empty() {
        tokens.push(word);
    }
    Ok(tokens)
}

struct Parser<'a> {
    tokens: &'a [String],
    known: &'a BTreeSet<VerifierName>,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.tokens.first().map(String::as_str)
    }

    fn next(&mut self) -> Option<&str> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn expect(&mut self, wanted: &str) -> Result<(), AcceptError> {
        match self.next() {
            Some(token) if token == wanted => Ok(()),
            Some(token) => Err(AcceptError::Unexpected(token.to_owned())),
            None => Err(AcceptError::Incomplete),
        }
    }

    fn any(&mut self) -> Result<Accept, AcceptError> {
        let first = self.all()?;
        let mut terms = vec![first];
        while self.peek() == Some("or") {
            self.next();
            terms.push(self.all()?);
        }
        Ok(single_or(terms, Accept::Any))
    }

    fn all(&mut self) -> Result<Accept, AcceptError> {
        let first = self.term()?;
        let mut terms = vec![first];
        while self.peek() == Some("and") {
            self.next();
            terms.push(self.term()?);
        }
        Ok(single_or(terms, Accept::All))
    }

    fn term(&mut self) -> Result<Accept, AcceptError> {
        self.depth += 1;
        if self.depth > 64 {
            return Err(AcceptError::TooDeep);
        }
        let term = self.open_term();
        self.depth -= 1;
        term
    }

    fn open_term(&mut self) -> Result<Accept, AcceptError> {
        let known = self.known;
        let token = self.next().ok_or(AcceptError::Incomplete)?.to_owned();
        match token.as_str() {
            "(" => {
                let inner = self.any()?;
                self.expect(")")?;
                Ok(inner)
            }
            ")" | "," | "and" | "or" | "of" => Err(AcceptError::Unexpected(token)),
            "not" => Err(AcceptError::Not),
            _ if self.peek() == Some("of") => {
                let needed: u32 = token
                    .parse()
                    .map_err(|_| AcceptError::Unexpected(token.clone()))?;
                self.next();
                self.expect("(")?;
                let mut terms = vec![self.any()?];
                while self.peek() == Some(",") {
                    self.next();
                    terms.push(self.any()?);
                }
                self.expect(")")?;
                if needed == 0 || needed as usize > terms.len() {
                    return Err(AcceptError::Impossible(needed, terms.len()));
                }
                if let Some(twin) = twin(&terms) {
                    let names: Vec<&str> = twin.names().iter().map(|name| name.as_str()).collect();
                    return Err(AcceptError::Twice(names.join(", ")));
                }
                Ok(Accept::AtLeast(needed, terms))
            }
            _ => {
                let name = VerifierName::new(token.as_str());
                if known.contains(&name) {
                    Ok(Accept::Verifier(name))
                } else {
                    Err(AcceptError::Unknown(token))
                }
            }
        }
    }
}

/// A term that stands before one just like it, in whatever order its own terms are.
fn twin(terms: &[Accept]) -> Option<&Accept> {
    let sorted: Vec<Accept> = terms.iter().map(Accept::sorted).collect();
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

fn single_or(mut terms: Vec<Accept>, wrap: fn(Vec<Accept>) -> Accept) -> Accept {
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

    fn check(text: &str, truths: &str, expected: Truth) {
        let accept = Accept::parse(text, &known()).unwrap();
        let truth = |name: &VerifierName| {
            let at = ["a", "b", "c", "tests"]
                .iter()
                .position(|n| *n == name.as_str())
                .unwrap();
            match truths.as_bytes()[at] {
                b't' => Truth::True,
                b'f' => Truth::False,
                _ => Truth::Open,
            }
        };
        assert_eq!(accept.evaluate(&truth), expected, "{text} with {truths}");
    }

    #[test]
    fn three_values() {
        check("a and b", "tt--", Truth::True);
        check("a and b", "t?--", Truth::Open);
        check("a and b", "f?--", Truth::False);
        check("a or b", "f?--", Truth::Open);
        check("a or b and c", "tff-", Truth::True);
        check("(a or b) and c", "tff-", Truth::False);
        check("2 of (a, b, c)", "t?f-", Truth::Open);
        check("2 of (a, b, c)", "tft-", Truth::True);
        check("2 of (a, b, c)", "fft-", Truth::False);
        check("2 of (a and b, c, tests)", "tftt", Truth::True);
    }

    #[test]
    fn bad_texts_say_what_is_wrong() {
        let err = |text: &str| Accept::parse(text, &known()).unwrap_err().to_string();
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
