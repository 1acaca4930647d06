//! Replaces what is left of a makefile's variables once those that it sets have their values.

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
/// Automatic variables: names of targets and of their prerequisites.
const AUTOMATIC: &str = "@<^+?*|%";
/// Stands for a name that make puts in.
const NAME: &str = "made-by-make";

/// Returns the text as the shell gets it, as far as that can be told. A variable that nobody sets
/// comes from the environment or is empty; the shell knows no more of it than is known here.
pub(super) fn recipe_text_for_shell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let mut chars = after.chars();
        rest = match chars.next() {
            // `$$` is the `$` of the shell.
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
                            // It becomes a variable of the shell: what only the run knows must
                            // stay in doubt.
                            None => {
                                out.push('$');
                                out.push_str(&name.replace(['.', '-'], "_"));
                            }
                        }
                        behind
                    }
                    // A function of make stays as it is.
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

/// Returns whether this is an automatic variable in brackets: `@`, `@D`, `<F`.
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
            assert_eq!(recipe_text_for_shell(text), expected, "{text}");
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
