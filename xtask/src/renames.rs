//! `renames [REV]... [--run]`: checks commits that change names and nothing else, by default those
//! that `.git-blame-ignore-revs` lists. None may change what is persisted or typed: the golden
//! files, the names that serde writes, the words of the command line. With `--run` the golden tests
//! are run at each of them.

use std::path::Path;
use std::process::{Command, ExitCode};

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, Fields, Item, Meta, Token};

/// The list that `git blame --ignore-revs-file` reads.
const LIST: &str = ".git-blame-ignore-revs";

/// Files that are recorded by builds of their time.
const GOLDEN_FILES: &str = ":(glob)crates/*/tests/golden/**";

/// Arguments of `cargo test` for the tests that read and write golden files.
const GOLDEN_TESTS: &[&[&str]] = &[
    &["-p", "checkrein-core", "--test", "core", "golden"],
    &["-p", "checkrein-execpolicy", "--test", "golden"],
    &["-p", "checkrein-runtime", "--test", "golden"],
    &["-p", "checkrein-cli", "--test", "it", "golden::"],
];

/// Derives whose output depends on the names of fields and variants: serde's and clap's.
const DERIVES_WITH_NAMES: &[&str] = &[
    "Serialize",
    "Deserialize",
    "Parser",
    "Args",
    "Subcommand",
    "ValueEnum",
];

/// Runs the command.
pub(crate) fn check_commits_only_rename(arguments: &[String]) -> Result<ExitCode, String> {
    let root = crate::build::checkout_root();
    let runs_tests = arguments.iter().any(|argument| argument == "--run");
    let mut revisions: Vec<String> = arguments
        .iter()
        .filter(|argument| *argument != "--run")
        .cloned()
        .collect();
    if revisions.is_empty() {
        let listed = std::fs::read_to_string(root.join(LIST));
        let listed = listed.map_err(|error| format!("{LIST}: {error}"))?;
        let lines = listed.lines().map(str::trim);
        let is_revision = |line: &&str| !line.is_empty() && !line.starts_with('#');
        revisions = lines.filter(is_revision).map(str::to_owned).collect();
    }
    let mut failed = false;
    for revision in &revisions {
        let subject = run_git(root, &["log", "-1", "--format=%h %s", revision])?;
        let mut differences = golden_files_changed_in_revision(root, revision)?;
        differences.extend(changed_serde_or_clap_names(root, revision)?);
        // The tests have to be built, so they run only where the quick comparisons find nothing.
        if runs_tests && differences.is_empty() {
            differences.extend(run_golden_tests_at_revision(root, revision)?);
        }
        failed |= !differences.is_empty();
        let verdict = if differences.is_empty() {
            "ok"
        } else {
            "CHANGED"
        };
        println!("{verdict:<8} {}", subject.trim());
        for difference in differences {
            println!("         {difference}");
        }
    }
    println!("{} commits", revisions.len());
    Ok(match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn golden_files_changed_in_revision(root: &Path, revision: &str) -> Result<Vec<String>, String> {
    let before = format!("{revision}^");
    let names = ["diff", "--name-only", &before, revision, "--", GOLDEN_FILES];
    let names = run_git(root, &names)?;
    Ok(names
        .lines()
        .map(|name| format!("golden file {name}"))
        .collect())
}

/// Compares the names that are written before and after the commit, for all Rust files that it
/// changes.
fn changed_serde_or_clap_names(root: &Path, revision: &str) -> Result<Vec<String>, String> {
    let before = format!("{revision}^");
    let listed = [
        "diff",
        "--name-status",
        "-M",
        &before,
        revision,
        "--",
        "*.rs",
    ];
    let mut differences = Vec::new();
    for line in run_git(root, &listed)?.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        // A moved file has two paths; its names must be the same in both.
        let (old, new) = match fields.as_slice() {
            [_, old, new] => (*old, *new),
            [_, path] => (*path, *path),
            _ => continue,
        };
        let (old, new) = (
            serde_and_clap_names_at_revision(root, &before, old)?,
            serde_and_clap_names_at_revision(root, revision, new)?,
        );
        if old != new {
            // Only the first difference is told: after it the two lists may be out of step.
            let at = old.iter().zip(&new).take_while(|(old, new)| old == new);
            let at = at.count();
            let name = |names: &[String]| names.get(at).cloned().unwrap_or_else(|| "-".to_owned());
            differences.push(format!("{line}: {} is {} now", name(&old), name(&new)));
        }
    }
    Ok(differences)
}

fn serde_and_clap_names_at_revision(
    root: &Path,
    revision: &str,
    path: &str,
) -> Result<Vec<String>, String> {
    // A file that does not exist at that revision writes no names.
    let Ok(text) = run_git(root, &["show", &format!("{revision}:{path}")]) else {
        return Ok(Vec::new());
    };
    serde_and_clap_names_in_source(&text).map_err(|error| format!("{revision}:{path}: {error}"))
}

/// Returns the names that serde and clap make of the fields and variants of a file, in its order:
/// what an attribute says, or the name in the code with the rule that applies to it.
fn serde_and_clap_names_in_source(text: &str) -> Result<Vec<String>, syn::Error> {
    let mut names = Vec::new();
    collect_serde_and_clap_names(&syn::parse_file(text)?.items, &mut names);
    Ok(names)
}

fn collect_serde_and_clap_names(items: &[Item], names: &mut Vec<String>) {
    for item in items {
        match item {
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    collect_serde_and_clap_names(items, names);
                }
            }
            Item::Struct(item) if derives_serde_or_clap_names(&item.attrs) => {
                let rule = serde_and_clap_attributes(&item.attrs).serde_renaming_rule("rename_all");
                collect_serialized_field_names(&item.fields, &rule, names);
            }
            Item::Enum(item) if derives_serde_or_clap_names(&item.attrs) => {
                let of_enum = serde_and_clap_attributes(&item.attrs);
                for variant in &item.variants {
                    let of_variant = serde_and_clap_attributes(&variant.attrs);
                    names.extend(of_variant.serde_or_clap_name(
                        &variant.ident,
                        &of_enum.serde_renaming_rule("rename_all"),
                    ));
                    // As in serde: for the fields of a variant, its own `rename_all` wins over
                    // `rename_all_fields`.
                    let rule = match of_variant.serde_renaming_rule("rename_all") {
                        rule if rule.is_empty() => of_enum.serde_renaming_rule("rename_all_fields"),
                        rule => rule,
                    };
                    collect_serialized_field_names(&variant.fields, &rule, names);
                }
            }
            _ => {}
        }
    }
}

fn collect_serialized_field_names(fields: &Fields, rule: &str, names: &mut Vec<String>) {
    for field in fields {
        if let Some(ident) = &field.ident {
            names.extend(serde_and_clap_attributes(&field.attrs).serde_or_clap_name(ident, rule));
        }
    }
}

fn derives_serde_or_clap_names(attributes: &[Attribute]) -> bool {
    let derives = attributes
        .iter()
        .filter(|one| one.path().is_ident("derive"));
    let mut derived = derives.flat_map(|derive| {
        let paths = Punctuated::<syn::Path, Token![,]>::parse_terminated;
        derive.parse_args_with(paths).unwrap_or_default()
    });
    derived.any(|path| {
        // The last segment: `serde::Serialize` is the same derive as `Serialize`.
        let last = path.segments.last();
        last.is_some_and(|last| DERIVES_WITH_NAMES.contains(&last.ident.to_string().as_str()))
    })
}

/// What the attributes of one item, variant or field say to serde and clap.
struct SerdeAndClapAttributes(Vec<Meta>);

fn serde_and_clap_attributes(attributes: &[Attribute]) -> SerdeAndClapAttributes {
    let ours = ["serde", "arg", "command", "value"];
    let is_ours = |one: &&Attribute| ours.iter().any(|name| one.path().is_ident(name));
    let listed = attributes.iter().filter(is_ours).flat_map(|attribute| {
        let metas = Punctuated::<Meta, Token![,]>::parse_terminated;
        attribute.parse_args_with(metas).unwrap_or_default()
    });
    SerdeAndClapAttributes(listed.collect())
}

impl SerdeAndClapAttributes {
    fn serde_renaming_rule(&self, name: &str) -> String {
        self.rust_attribute_value(name).unwrap_or_default()
    }

    /// Returns the value of a setting as text; of one in brackets, all that they hold.
    fn rust_attribute_value(&self, name: &str) -> Option<String> {
        self.0
            .iter()
            .find(|meta| meta.path().is_ident(name))
            .and_then(|meta| match meta {
                Meta::NameValue(pair) => Some(pair.value.to_token_stream().to_string()),
                Meta::List(list) => Some(list.tokens.to_string()),
                Meta::Path(_) => None,
            })
    }

    /// Returns the name that is written; `None` where none is.
    fn serde_or_clap_name(&self, ident: &syn::Ident, rule: &str) -> Option<String> {
        let nameless = ["skip", "flatten", "subcommand"];
        if self
            .0
            .iter()
            .any(|meta| nameless.iter().any(|name| meta.path().is_ident(name)))
        {
            return None;
        }
        let said = ["rename", "name", "long", "value_name"];
        let said = said.iter().find_map(|name| self.rust_attribute_value(name));
        // The rule is not applied: name and rule are compared as they stand. A name that is to be
        // kept must be pinned by an attribute before the commit that renames.
        Some(said.unwrap_or_else(|| format!("{rule} {ident}")))
    }
}

/// Runs the golden tests on a checkout of that revision.
fn run_golden_tests_at_revision(root: &Path, revision: &str) -> Result<Vec<String>, String> {
    let base = crate::build::cargo_build_folder(root).join("renames");
    let tree = base.join("tree");
    // One worktree serves all revisions, so that each builds only what it changes. `--force` drops
    // whatever a run has left behind.
    if tree.exists() {
        run_git(
            &tree,
            &["checkout", "--quiet", "--force", "--detach", revision],
        )?;
    } else {
        let tree = tree.display().to_string();
        run_git(
            root,
            &["worktree", "add", "--quiet", "--detach", &tree, revision],
        )?;
    }
    let mut failed = Vec::new();
    for arguments in GOLDEN_TESTS {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["test", "--quiet"])
            .args(*arguments)
            .current_dir(&tree)
            .env("CARGO_TARGET_DIR", base.join("target"))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            failed.push(format!("cargo test {}", arguments.join(" ")));
        }
    }
    Ok(failed)
}

fn run_git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "git {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_serde_or_clap_writes_is_seen_to_change() {
        let names = |text: &str| serde_and_clap_names_in_source(text).unwrap();
        let old = "#[derive(Serialize)] #[serde(rename_all = \"snake_case\")] enum E { Old { #[serde(skip)] a: u8, b: u8 } }";
        assert_eq!(names(old), ["\"snake_case\" Old", " b"]);
        assert_ne!(names(old), names(&old.replace("Old", "New")));
        assert_ne!(names(old), names(&old.replace("b:", "c:")));
        assert_ne!(names(old), names(&old.replace("snake_case", "kebab-case")));
        assert_eq!(names(old), names(&old.replace("a:", "c:")));
        assert_eq!(names(old), names(&old.replace("E {", "F {")));
        let pinned = "#[derive(serde::Deserialize)] struct S { #[serde(default, rename = \"old\")] old: u8 }";
        assert_eq!(names(pinned), names(&pinned.replace("old:", "new:")));
        let typed = "#[derive(Args)] struct A { #[arg(long)] quiet: bool, #[arg(long = \"dir\")] folder: String }";
        assert_eq!(names(typed), [" quiet", "\"dir\""]);
        // What has no written names is free.
        assert!(names("struct S { a: u8 } enum E { A }").is_empty());
    }
}
