//! Bounds how deep the syntax tree of a rules file can get, by a scan before it is parsed: the
//! output of the parser is walked and dropped recursively.

/// Tokens between two commas, summed over the open brackets. A rule has a handful.
const MAX_PARTS: usize = 2_000;
/// Each `elif` is one level deeper than the one before it.
const MAX_ELIF: usize = 500;
/// Columns of indentation.
const MAX_INDENT: usize = 400;

/// Fails with the line, from 1, at which the text gets too complex.
pub(super) fn check_rules_text_complexity(text: &str) -> Result<(), usize> {
    let mut levels = vec![0_usize];
    let mut total = 0_usize;
    let mut elifs = 0_usize;
    let mut line = 1_usize;
    let mut word = String::new();
    let mut indent = Some(0_usize);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c.is_alphanumeric() || c == '_' {
            // Only `elif` is of interest, so longer words need not be kept.
            if word.len() < 8 {
                word.push(c);
            }
        } else if !word.is_empty() {
            elifs += usize::from(word == "elif");
            word.clear();
            count_expression_part(&mut levels, &mut total);
        }
        rest = match c {
            '\'' | '"' => {
                word.clear();
                count_expression_part(&mut levels, &mut total);
                let after = skip_string_literal(rest, c);
                let taken = rest.len() - after.len();
                line += rest.bytes().take(taken).filter(|b| *b == b'\n').count();
                indent = None;
                after
            }
            '#' => rest.find('\n').and_then(|at| rest.get(at..)).unwrap_or(""),
            _ => {
                match c {
                    '(' | '[' | '{' => {
                        count_expression_part(&mut levels, &mut total);
                        levels.push(0);
                    }
                    ')' | ']' | '}' if levels.len() > 1 => {
                        total -= levels.pop().unwrap_or(0);
                    }
                    ',' | ';' => reset_expression_part_count(&mut levels, &mut total),
                    '\n' => {
                        line += 1;
                        // Inside brackets a newline ends no statement.
                        if levels.len() == 1 {
                            reset_expression_part_count(&mut levels, &mut total);
                        }
                    }
                    _ if c.is_whitespace() || c.is_alphanumeric() || c == '_' => {}
                    _ => count_expression_part(&mut levels, &mut total),
                }
                indent = match (c, indent) {
                    ('\n', _) => Some(0),
                    (' ' | '\t', Some(columns)) => Some(columns + 1),
                    _ => None,
                };
                rest.get(c.len_utf8()..).unwrap_or("")
            }
        };
        let deep = levels.len() + total > MAX_PARTS || elifs > MAX_ELIF;
        // Blank lines and comments do not indent anything, but nobody indents them so far.
        if deep || indent.is_some_and(|columns| columns > MAX_INDENT) {
            return Err(line);
        }
    }
    Ok(())
}

fn count_expression_part(levels: &mut [usize], total: &mut usize) {
    if let Some(top) = levels.last_mut() {
        *top += 1;
        *total += 1;
    }
}

fn reset_expression_part_count(levels: &mut [usize], total: &mut usize) {
    if let Some(top) = levels.last_mut() {
        *total -= *top;
        *top = 0;
    }
}

/// Returns what follows the string literal that `text` begins with. Raw strings end at the same
/// quote: in Starlark too a backslash keeps the next quote in.
fn skip_string_literal(text: &str, quote: char) -> &str {
    let triple = [quote; 3].iter().collect::<String>();
    let (open, long) = if text.starts_with(&triple) {
        (3, true)
    } else {
        (1, false)
    };
    let mut rest = text.get(open..).unwrap_or("");
    loop {
        let Some(c) = rest.chars().next() else {
            return "";
        };
        if long && rest.starts_with(&triple) {
            return rest.get(3..).unwrap_or("");
        }
        let next = rest.get(c.len_utf8()..).unwrap_or("");
        match c {
            _ if c == quote && !long => return next,
            // A plain literal cannot go on after its line; the parser will refuse it.
            '\n' if !long => return rest,
            '\\' => {
                let skipped = next.chars().next().map_or(0, char::len_utf8);
                rest = next.get(skipped..).unwrap_or("");
            }
            _ => rest = next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_deep_nesting_is_refused() {
        let check = |text: &str, expected: Result<(), usize>| {
            assert_eq!(
                check_rules_text_complexity(text),
                expected,
                "{}",
                text.chars().take(60).collect::<String>()
            );
        };
        check("prefix_rule(pattern=[\"a\", ['b', \"c\"]])\n", Ok(()));
        let flat: Vec<String> = (0..20_000).map(|n| format!("'cmd{n}'")).collect();
        check(&format!("x = [{}]", flat.join(", ")), Ok(()));
        check(&"x = 1\n".repeat(50_000), Ok(()));
        check(&format!("x = '{}'", "(".repeat(10_000)), Ok(()));
        check(&format!("x = \"\"\"{}\"\"\"", "(\n'".repeat(5_000)), Ok(()));
        check(&format!("# {}\nx = 1", "((".repeat(10_000)), Ok(()));
        check(&"(".repeat(10_000), Err(1));
        check(&format!("\n\nx = {}1", "-".repeat(10_000)), Err(3));
        check(&format!("x = {}1", "1 + ".repeat(10_000)), Err(1));
        check(&format!("x = {}1", "not ".repeat(10_000)), Err(1));
        check(
            &format!("if a:\n  b\n{}", "elif a:\n  b\n".repeat(10_000)),
            Err(1_001 + 2),
        );
        check(&format!("{}x", " ".repeat(10_000)), Err(1));
    }
}
