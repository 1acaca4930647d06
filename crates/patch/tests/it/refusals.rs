//! What a refusal says: enough to write the patch again, and never more than fits.

use checkrein_patch::{PatchRefusal, PatchRefusalCause, render_patch_refusals};

use crate::tree::{checked, files, memory};

const FILE: &str = "fn main() {\n    let greeting = \"hello\";\n    println!(\"{greeting}\");\n}\n\nfn other() {\n    todo();\n}\n";

fn refusals(body: &str) -> Vec<PatchRefusal> {
    let patch = format!("*** Begin Patch\n*** Update File: src/main.rs\n{body}\n*** End Patch");
    checked(&memory(&files(&[("src/main.rs", FILE)])), &patch).unwrap_err()
}

#[test]
fn the_nearest_lines_are_shown_with_what_differs() {
    let found = refusals(
        "@@\n fn main() {\n-    let greeting = \"hallo\";\n+    let greeting = \"bye\";\n     println!(\"{greeting}\");",
    );
    assert_eq!(
        render_patch_refusals(&found),
        "src/main.rs: these 3 lines are not in the file (patch line 3)
  the file has, from line 1 (`>` is what the patch has there):
      1| fn main() {
      2|     let greeting = \"hello\";
      >|     let greeting = \"hallo\";
      3|     println!(\"{greeting}\");"
    );
    // Nothing the same, but something like it.
    let found = refusals("@@\n-    let greetings = \"hello!\";\n+x");
    let text = render_patch_refusals(&found);
    assert!(
        text.contains("    2|     let greeting = \"hello\";"),
        "{text}"
    );
    let found = refusals("@@\n-    let  greeting=\"hello\";\n+x");
    assert!(
        render_patch_refusals(&found).contains("(only blanks differ)"),
        "{}",
        render_patch_refusals(&found)
    );
}

#[test]
fn each_kind_of_miss_says_what_to_do() {
    let says = |body: &str, expected: &str| {
        let text = render_patch_refusals(&refusals(body));
        assert!(text.contains(expected), "{text}");
    };
    says("@@ -1,2 +1,2 @@\n-fn main() {\n+x", "knows none");
    says(
        "@@ fn mian() {\n-    todo();\n+x",
        "the line behind `@@`, `fn mian() {`, is not in the file",
    );
    says(
        "@@\n-    todo();\n+x\n@@\n-fn main() {\n+y",
        "only at line 1, not below the chunk before",
    );
    says(
        "@@\n-fn main() {\n+x\n*** End of File",
        "at line 1, not at the end of the file: leave `*** End of File` out",
    );
    says("@@\n-zzzzzzzzzzzz\n+x", "nor anything like it");
}

#[test]
fn all_files_are_told_of_and_the_whole_is_bounded() {
    let long = "x".repeat(100_000);
    let mut patch = "*** Begin Patch\n".to_owned();
    for name in 0..200 {
        patch.push_str(&format!("*** Update File: {long}{name}\n@@\n-{long}\n+y\n"));
    }
    patch.push_str("*** End Patch");
    let found = checked(&memory(&files(&[])), &patch).unwrap_err();
    let text = render_patch_refusals(&found);
    assert!(text.len() < 2048, "{}", text.len());
    assert!(text.contains("more"), "{text}");

    let wide = format!("{}\n", "y".repeat(50_000)).repeat(400);
    let tree = memory(&files(&[("f", &wide)]));
    let block = format!("-{}\n", "y".repeat(49_999)).repeat(300);
    let patch = format!("*** Begin Patch\n*** Update File: f\n@@\n{block}+x\n*** End Patch");
    let text = render_patch_refusals(&checked(&tree, &patch).unwrap_err());
    assert!(text.len() < 2048, "{}", text.len());
}

#[test]
fn diffs_say_where_they_fail() {
    let tree = memory(&files(&[("src/main.rs", FILE)]));
    let diff = "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -5,4 +5,4 @@\n \n fn other() {\n-    undone();\n+    done();\n }\n";
    let text = render_patch_refusals(&checked(&tree, diff).unwrap_err());
    assert!(
        text.contains("    7|     todo();\n      >|     undone();"),
        "{text}"
    );
    let wrong = diff.replace("-5,4 +5,4", "-5,6 +5,6");
    let text = render_patch_refusals(&checked(&tree, &wrong).unwrap_err());
    assert!(text.contains("counts of lines"), "{text}");
}

#[test]
fn what_cannot_be_seen_is_named() {
    let says = |file: &str, patch: &str, expected: &str| {
        let found = checked(&memory(&files(&[("f", file)])), patch).unwrap_err();
        let text = render_patch_refusals(&found);
        assert!(text.contains(expected), "{text}");
    };
    let v4a =
        |line: &str| format!("*** Begin Patch\n*** Update File: f\n@@\n-{line}\n+x\n*** End Patch");
    says(
        "\u{feff}one two three\n",
        &v4a("one two three"),
        "(from character 1 on the file has U+FEFF U+006F, this U+006F U+006E)",
    );
    says(
        "let caf\u{e9} = 1;\n",
        &v4a("let cafe\u{301} = 1;"),
        "(from character 8 on the file has U+00E9 U+0020, this U+0065 U+0301)",
    );
    let diff = |line: &str| format!("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-{line}\n+x\n");
    says("\u{feff}one two\n", &diff("one two"), "has U+FEFF");
    says("one  two\n", &diff("one two"), "(only blanks differ)");
    says(
        "one \u{2013} two\n",
        &diff("one - two"),
        "(only blanks or typographic punctuation differ)",
    );
}

#[test]
fn diffs_that_would_change_nothing_are_none() {
    let tree = memory(&files(&[("f", "one\ntwo\n")]));
    let check = |diff: &str, cause: PatchRefusalCause, expected: &str| {
        let found = checked(&tree, diff).unwrap_err();
        assert_eq!(found[0].cause, cause, "{diff}");
        assert!(
            render_patch_refusals(&found).contains(expected),
            "{}",
            render_patch_refusals(&found)
        );
    };
    let head = "--- a/f\n+++ b/f\n";
    check(
        &format!("{head}@@\n one\n-two\n+TWO\n"),
        PatchRefusalCause::Malformed,
        "patch line 3: a hunk begins with `@@ -LINE,COUNT",
    );
    check(
        &format!("{head}@@ ... @@\n one\n-two\n+TWO\n"),
        PatchRefusalCause::Malformed,
        "patch line 3",
    );
    check(
        &format!("{head}@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n@@\n-one\n+ONE\n"),
        PatchRefusalCause::Malformed,
        "patch line 7",
    );
    check(
        &format!("{head}@@@ -1,2 -1,2 +1,2 @@@\n  one\n- two\n+ TWO\n"),
        PatchRefusalCause::Unsupported,
        "combined diff",
    );
    check(
        "diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,2 -1,2 +1,2 @@@\n  one\n",
        PatchRefusalCause::Unsupported,
        "patch line 1",
    );
    check(
        "diff --git a/f b/f\nindex 111..222 100644\n--- a/f\n+++ b/f\n",
        PatchRefusalCause::Malformed,
        "nothing is changed in f",
    );
    // A file that gets another mode has no hunk.
    let mode = "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n";
    assert!(checked(&tree, mode).is_ok());
    // Lines of a hunk are no heads of hunks.
    let tree = memory(&files(&[("f", "@@\n-- x\n")]));
    let diff = format!("{head}@@ -1,2 +1,2 @@\n-@@\n--- x\n+@@ a\n+++ y\n");
    assert!(checked(&tree, &diff).is_ok());
}
