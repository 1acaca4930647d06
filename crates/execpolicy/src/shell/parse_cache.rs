//! Caches the syntax trees of the scripts of one request, so that a script is parsed once however
//! many questions are asked about it.

use std::sync::{Arc, Mutex, PoisonError};

use tree_sitter::{ParseOptions, Parser, Tree};

use super::grammar_mask;

/// Rounds of the parser (a hundred steps each) that an empty script gets, and bytes that allow one
/// more. An ordinary text takes one round in fifty bytes, one made to be ambiguous any number. A
/// count and not a clock, so that the same text always gets the same answer.
const ROUNDS: usize = 200;
const BYTES_PER_ROUND: usize = 10;
/// Trees that are kept, and bytes of the longest script whose tree is kept.
const MAX_KEPT: usize = 32;
const MAX_SCRIPT: usize = 256 << 10;

/// The parsed scripts, shared by all questions about the same request.
#[derive(Clone, Default)]
pub struct ParsedShellScriptCache(Arc<Mutex<ShellParseCache>>);

#[derive(Default)]
struct ShellParseCache {
    parser: Option<Parser>,
    trees: Vec<(Box<str>, Option<Tree>)>,
    parses: usize,
}

impl ParsedShellScriptCache {
    /// Returns how often a script was parsed.
    pub fn script_parse_count(&self) -> usize {
        let parsed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parsed.parses
    }

    /// Returns the tree of this script; `None` if the grammar gives up on it.
    pub(crate) fn shell_syntax_tree(&self, text: &str) -> Option<Tree> {
        // The parser is taken out while it works, so a poisoned lock still guards a usable cache.
        let mut parsed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tree)) = parsed.trees.iter().find(|(known, _)| **known == *text) {
            return tree.clone();
        }
        parsed.parses += 1;
        let mut parser = parsed.parser.take().or_else(bash_parser)?;
        let tree = parse_script(&mut parser, text);
        parsed.parser = Some(parser);
        // A failure is kept as well, so that the whole budget is spent on a hopeless script only
        // once.
        if parsed.trees.len() < MAX_KEPT && text.len() <= MAX_SCRIPT {
            parsed.trees.push((text.into(), tree.clone()));
        }
        tree
    }
}

fn parse_script(parser: &mut Parser, text: &str) -> Option<Tree> {
    let most = ROUNDS + text.len() / BYTES_PER_ROUND;
    let mut rounds = 0;
    let mut progress = |_: &tree_sitter::ParseState| {
        rounds += 1;
        match rounds > most {
            true => std::ops::ControlFlow::Break(()),
            false => std::ops::ControlFlow::Continue(()),
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let masked = grammar_mask::adapt_script_for_grammar(text);
    let bytes = masked.as_ref();
    let input = |at: usize, _| bytes.get(at..).unwrap_or(&[]);
    let tree = parser.parse_with_options(&mut { input }, None, Some(options));
    // Without a reset the next parse would resume this one where it was stopped.
    if tree.is_none() {
        parser.reset();
    }
    tree
}

fn bash_parser() -> Option<Parser> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
    Some(parser)
}
