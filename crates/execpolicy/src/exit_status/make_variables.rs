//! What is left of a makefile's variables once those that it sets have their values.

/// Variables that make sets itself.
const BUILT_IN: &[(&str, &str)] = &[
    ("AR", "ar"),
    ("CC", "cc"),
    ("CPP", "cc -E"),
    ("CURDIR", "."),
    ("CXX", "c++"),
    ("MAKE", "make"),
    ("RM", "rm -f"),
];
/// Automatic ones: names of targets and of what they need.
const AUTOMATIC: &str = "@<^+?*|%";
/// Stands for a name that make puts in.
const NAME: &str = "made-by-make";

/// The text as the shell gets it, as far as can be told. A variable that nobody sets comes from the
/// environment, or is empty: the shell knows no more of it than we do.
pub(super) fn replace_make_variables(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let mut chars = after.chars();
        rest = match chars.next() {
            // The shell's own.
            Some('$') => {
                out.push('$');
                chars.as_str()
            }
            Some(c) if AUTOMATIC.contains(c) => {
                out.push_str(NAME);
                chars.as_str()
            }
            Some(open @ ('(' | '{')) => {
                let close = if open == '(' { ')' } else { '}' };
                match chars.as_str().split_once(close) {
                    Some((name, behind)) if is_automatic_variable(name) => {
                        out.push_str(NAME);
                        behind
                    }
                    Some((name, behind)) if is_make_variable_name(name) => {
                        let value = BUILT_IN.iter().find(|(known, _)| *known == name);
                        match value {
                            Some((_, value)) => out.push_str(value),
                            None => {
                                out.push('$');
                                out.push_str(&name.replace(['.', '-'], "_"));
                            }
                        }
                        behind
                    }
                    // A function of make's.
                    _ => {
                        out.push('$');
                        after
                    }
                }
            }
            _ => {
                out.push('$');
                after
            }
        };
    }
    out.push_str(rest);
    out
}

fn is_make_variable_name(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

/// `@D`, `<F`, and the plain ones in brackets.
fn is_automatic_variable(name: &str) -> bool {
    let name = name.strip_suffix(['D', 'F']).unwrap_or(name);
    name.chars().count() == 1 && AUTOMATIC.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn make_puts_in_names_and_the_shell_keeps_its_own() {
        let check = |text: &str, expected: &str| {
            assert_eq!(replace_make_variables(text), expected, "{text}");
        };
        check(
            "cc -o $@ $< $(@D) ${<F}",
            "cc -o made-by-make made-by-make made-by-make made-by-make",
        );
        check("$(CC) $(CFLAGS) ${MAKE}", "cc $CFLAGS make");
        check(
            "for f in a; do echo $$f $$?; done",
            "for f in a; do echo $f $?; done",
        );
        check(
            "$(shell pwd) $(wildcard *.c)",
            "$(shell pwd) $(wildcard *.c)",
        );
        check("echo $", "echo $");
    }
}
