//! Recognises texts that Bash evaluates as arithmetic, or as `name[arithmetic]`, and whose
//! brackets it expands: `i='a[$(rm x)]'; echo $((i))` runs `rm`.
//!
//! Such a text alone does nothing. It is reported as doubtful only if the same request also
//! evaluates arithmetic.

/// Builtins that read a word as an arithmetic expression or as the name of a variable.
const ARITHMETIC_READERS: &[&str] = &[
    "let",
    "read",
    "mapfile",
    "readarray",
    "printf",
    "wait",
    "test",
    "[",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "getopts",
    "shift",
];

/// Returns whether this command, or a syntax node of this kind, evaluates arithmetic.
pub(super) fn evaluates_arithmetic(kind: &str, source: &str) -> bool {
    match kind {
        "arithmetic_expansion"
        | "c_style_for_statement"
        | "subscript"
        | "declaration_command"
        | "unset_command"
        | "test_command"
        | "array" => true,
        "command" => ARITHMETIC_READERS.contains(&source),
        // `${!v}` follows a name, and `${v:n}` holds an arithmetic expression.
        "expansion" => source.starts_with("${!") || source.contains(':'),
        _ => source.starts_with("(("),
    }
}

/// Returns whether a text is `name[...]` with a substitution in the brackets.
pub(super) fn is_arithmetic_injection(text: &str) -> bool {
    text.match_indices('[').any(|(at, _)| {
        // Only a bracket that directly follows a name or a closing bracket is a subscript. A `[`
        // behind a blank is the test command, whose substitutions the grammar reports anyway.
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let named =
            before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '(' | ']' | '}'));
        let inner = text.get(at + 1..).unwrap_or("");
        named && (inner.contains("$(") || inner.contains('`') || inner.contains("${"))
    })
}

/// Returns whether a value assigned to a variable could become part of such a text.
pub(super) fn may_become_arithmetic_injection(text: &str) -> bool {
    text.contains("$(") || text.contains('`') || text.ends_with('$') || text.contains("[$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_run_as_sums() {
        for (text, expected) in [
            ("a[$(rm x)]", true),
            ("q[`rm x`]", true),
            ("a=([$(rm x)]=1)", true),
            ("[ $(ls) ]", false),
            ("a[1] $(ls)", true),
            ("a[1]", false),
        ] {
            assert_eq!(is_arithmetic_injection(text), expected, "{text}");
        }
        assert!(
            may_become_arithmetic_injection("$(")
                && may_become_arithmetic_injection("q[$")
                && !may_become_arithmetic_injection("$x")
        );
    }
}
