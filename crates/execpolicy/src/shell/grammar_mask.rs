//! Prepares a script for the grammar: the result is as long as the script, byte for byte, and what
//! the grammar reads differently from the shell is rewritten so that both agree. Words are read
//! from the script itself; only their positions come from the grammar.

use std::borrow::Cow;

/// Stands for each byte of a non-ASCII character: part of a word, but not of a name.
const LETTER: u8 = 1;

/// Returns whether the shell reads this word as a keyword where a command could begin.
pub(crate) fn is_keyword(word: &str) -> bool {
    opens_compound(word.as_bytes())
        || matches!(
            word,
            "}" | "!" | "then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "coproc"
        )
}

/// Returns whether this keyword opens a compound command.
fn opens_compound(word: &[u8]) -> bool {
    matches!(
        word,
        b"{" | b"if" | b"while" | b"until" | b"for" | b"case" | b"select" | b"function"
    )
}

/// Masks a script.
///
/// - Every non-ASCII character is part of a word to the shell. The grammar takes a no-break space
///   for a blank, and its scanner passes any character to C's `isdigit`, which for some of them
///   reads far outside its table (tree-sitter-bash issue 337: the whole process crashes).
/// - `!` and `time` before a compound command are not in the grammar. They do not change what
///   runs, so blanks replace them.
/// - `for NAME do` is not in the grammar either. A semicolon replaces the blank before `do`.
pub(crate) fn adapt_script_for_grammar(text: &str) -> Cow<'_, [u8]> {
    let bytes = text.as_bytes();
    let mut masked = Cow::Borrowed(bytes);
    if !text.is_ascii() {
        for byte in masked.to_mut().iter_mut().filter(|byte| !byte.is_ascii()) {
            *byte = LETTER;
        }
    }
    // Every replacement keeps its length, or the positions of the tree would not fit the script.
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(find_bang_or_time) {
        let (start, length) = (at + found.0, found.1);
        if is_followed_by_compound_command(bytes, start, length)
            && let Some(place) = masked.to_mut().get_mut(start..start + length)
        {
            place.fill(b' ');
        }
        at = start + length;
    }
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("for ")) {
        let start = at + found;
        at = start + 4;
        if let Some(blank) = blank_index_before_do(bytes, start)
            && let Some(byte) = masked.to_mut().get_mut(blank)
        {
            *byte = b';';
        }
    }
    masked
}

/// Returns the index of the blank before `do` in `for NAME do`, where the grammar expects a
/// semicolon.
fn blank_index_before_do(bytes: &[u8], start: usize) -> Option<usize> {
    let before = start.checked_sub(1).and_then(|before| bytes.get(before));
    let begins = before.is_none_or(|byte| b" \t\n;&|({".contains(byte));
    // The name is bounded so that a script of many `for ` cannot make the scan quadratic.
    let rest = bytes.get(start + 4..).filter(|_| begins)?;
    let name = rest
        .iter()
        .take(64)
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    let behind = rest.get(name..)?;
    let does = behind.starts_with(b" do ") || behind.starts_with(b" do\n");
    (name > 0 && does).then_some(start + 4 + name)
}

/// Returns the position and length of the next `!` or `time`.
fn find_bang_or_time(rest: &[u8]) -> Option<(usize, usize)> {
    rest.iter().enumerate().find_map(|(at, byte)| match byte {
        b'!' => Some((at, 1)),
        b't' if rest.get(at..).is_some_and(|word| word.starts_with(b"time")) => Some((at, 4)),
        _ => None,
    })
}

/// Returns whether this is a word of its own, followed by a compound command or another such word.
fn is_followed_by_compound_command(bytes: &[u8], start: usize, length: usize) -> bool {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let begins = start
        .checked_sub(1)
        .and_then(|before| bytes.get(before))
        .is_none_or(|byte| b" \t\n;&|(`{".contains(byte));
    if !begins {
        return false;
    }
    let rest = bytes.get(start + length..).unwrap_or(&[]);
    let blanks = rest.iter().take_while(|byte| blank(byte)).count();
    // Ten bytes are enough for the longest keyword, `function`, and for the byte that ends it.
    let rest = rest.get(blanks..).unwrap_or(&[]);
    let rest = rest.get(..rest.len().min(10)).unwrap_or(&[]);
    let end = rest
        .iter()
        .position(|byte| b" \t\n;&|()".contains(byte))
        .unwrap_or(rest.len());
    let word = rest.get(..end).unwrap_or(&[]);
    blanks > 0 && (opens_compound(word) || matches!(word, b"!" | b"time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_grammar_gets() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                String::from_utf8_lossy(&adapt_script_for_grammar(text)),
                expected,
                "{text}"
            );
        };
        check("! rm x; time rm", "! rm x; time rm");
        check("! { rm; }", "  { rm; }");
        check("a; time  case x in", "a;       case x in");
        check("! time { a; }", "       { a; }");
        check("echo a! {", "echo a! {");
        check("sometime {", "sometime {");
        check("for f do a; done", "for f;do a; done");
        check("for f in do a", "for f in do a");
        check("é\u{a0}x", "\u{1}\u{1}\u{1}\u{1}x");
    }
}
