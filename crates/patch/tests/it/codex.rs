//! What Codex's `apply_patch` makes of a patch, seen on 0.169.0: the vectors of its matching,
//! and its scenarios in files and words of our own. `cargo xtask parity patch` asks the real one.

use checkrein_patch::PatchRefusalCause;

use crate::tree::{checked, files, memory, patched};

/// Chunks for the file `f`.
#[track_caller]
fn chunk(before: &str, body: &str, expected: Result<&str, PatchRefusalCause>) {
    let patch = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
    let after = patched(&files(&[("f", before)]), &patch);
    let after = after.as_ref().map(|files| files["f"].as_str());
    assert_eq!(
        after.map_err(|cause| *cause),
        expected,
        "{before:?}\n{body}"
    );
}

#[test]
fn vectors_of_the_matching() {
    let no = Err(PatchRefusalCause::NoMatch);
    chunk("a\nb\n", "@@ a\n+z", Ok("a\nb\nz\n"));
    chunk("x\nx\n", "@@\n-x\n+y", Ok("y\nx\n"));
    chunk("x\nb\nx\n", "@@\n-x\n+y\n*** End of File", Ok("x\nb\ny\n"));
    chunk("x\nb\n", "@@\n-x\n+y\n*** End of File", no);
    chunk("a  \nb\n", "@@\n-a\n+A", Ok("A\nb\n"));
    chunk("   a  \nb\n", "@@\n-a\n+A", Ok("A\nb\n"));
    chunk(
        "x – “q” ‘s’ a\u{a0}b\n",
        "@@\n-x - \"q\" 's' a b\n+ok",
        Ok("ok\n"),
    );
    chunk("a", "@@\n-a\n+A", Ok("A\n"));
    chunk("a\n", "@@\n-a", Ok(""));
    chunk("a\r\nb\r\n", "@@\n-a\n+A\n b", Ok("A\r\nb\r\n"));
    chunk("a\nb\nc\n", "@@\n-c\n+C\n@@\n-a\n+A", no);
    chunk("a\nb\nc\n", "@@\n-a\n-b\n+X\n@@\n-b\n-c\n+Y", no);
    chunk("x\n\ny\n", "@@\n x\n\n-y\n+Y", Ok("x\n\nY\n"));
}

#[test]
fn more_of_the_matching() {
    // The strictest way of reading wins, wherever it is.
    chunk("a \na\n", "@@\n-a\n+b", Ok("a \nb\n"));
    // What stays keeps the file's own spelling.
    chunk("a \r\nb\nc \n", "@@\n a\n-b\n+B\n c", Ok("a \r\nB\r\nc \n"));
    chunk("x\n\n", "@@\n-x\n+y", Ok("y\n\n"));
    chunk("x\n\n", "@@\n+y", Ok("x\n\ny\n"));
    // A last empty line that is not there is done without.
    chunk("a\nb\n", "@@\n-a\n+A\n \n@@\n-b\n+B", Ok("A\nB\n"));
    chunk("a\nb\n", "@@ a\n \n+z", Ok("a\n\nz\nb\n"));
    chunk(
        "“q”\n\nb\n\n",
        "@@\n+n\n \n-\n*** End of File",
        Ok("“q”\n\nb\nn\n"),
    );
    chunk("a\nb\n", "@@\n+z\n@@\n-b\n+B", Ok("a\nB\nz\n"));
    chunk("a\rb\nc\n", "@@\n-b\n+B", Ok("a\rB\rc\n"));
    chunk("a\nb\n", "@@ q\n+y", Err(PatchRefusalCause::NoContext));
    chunk("a\nb\n", "-a\n+A", Ok("A\nb\n"));
    chunk("a\nb\n", "*** End of File\n@@\n-a\n+A", Ok("A\nb\n"));
    chunk(
        "\u{2000}a\u{2000}b\n",
        "@@\n-a b\n+x",
        Err(PatchRefusalCause::NoMatch),
    );
}

#[track_caller]
fn scenario(
    before: &[(&str, &str)],
    patch: &str,
    expected: Result<&[(&str, &str)], PatchRefusalCause>,
) {
    let after = patched(&files(before), patch);
    assert_eq!(after, expected.map(files), "{patch}");
}

#[test]
fn scenarios_that_apply() {
    scenario(
        &[],
        "*** Begin Patch\n*** Add File: bar.md\n+This is a new file\n*** End Patch",
        Ok(&[("bar.md", "This is a new file\n")]),
    );
    scenario(
        &[("modify", "line1\nline2\n"), ("delete", "obsolete\n")],
        "*** Begin Patch\n*** Add File: nested/new\n+created\n*** Delete File: delete\n*** Update File: modify\n@@\n-line2\n+changed\n*** End Patch",
        Ok(&[("modify", "line1\nchanged\n"), ("nested/new", "created\n")]),
    );
    scenario(
        &[("multi", "line1\nline2\nline3\nline4\n")],
        "*** Begin Patch\n*** Update File: multi\n@@\n-line2\n+changed2\n@@\n-line4\n+changed4\n*** End Patch",
        Ok(&[("multi", "line1\nchanged2\nline3\nchanged4\n")]),
    );
    scenario(
        &[("old/name", "old content\n"), ("old/other", "stays\n")],
        "*** Begin Patch\n*** Update File: old/name\n*** Move to: renamed/dir/name\n@@\n-old content\n+new content\n*** End Patch",
        Ok(&[
            ("old/other", "stays\n"),
            ("renamed/dir/name", "new content\n"),
        ]),
    );
    // A move, and an add, take the place of what is there.
    scenario(
        &[("old", "from\n"), ("there", "existing\n")],
        "*** Begin Patch\n*** Update File: old\n*** Move to: there\n@@\n-from\n+new\n*** End Patch",
        Ok(&[("there", "new\n")]),
    );
    scenario(
        &[("dup", "old content\n")],
        "*** Begin Patch\n*** Add File: dup\n+new content\n*** End Patch",
        Ok(&[("dup", "new content\n")]),
    );
    scenario(
        &[("no_newline", "no newline at end")],
        "*** Begin Patch\n*** Update File: no_newline\n@@\n-no newline at end\n+first\n+second\n*** End Patch",
        Ok(&[("no_newline", "first\nsecond\n")]),
    );
    scenario(
        &[("input", "line1\nline2\n")],
        "*** Begin Patch\n*** Update File: input\n@@\n+added 1\n+added 2\n*** End Patch",
        Ok(&[("input", "line1\nline2\nadded 1\nadded 2\n")]),
    );
    scenario(
        &[("foo", "old\n")],
        "  *** Begin Patch  \n  *** Update File: foo  \n@@\n-old\n+new\n *** End Patch ",
        Ok(&[("foo", "new\n")]),
    );
    scenario(
        &[("foo", "naïve “line”\n")],
        "*** Begin Patch\n*** Update File: foo\n@@\n-naïve “line”\n+ümlaut ✅\n*** End Patch",
        Ok(&[("foo", "ümlaut ✅\n")]),
    );
    scenario(
        &[("keep", "k\n"), ("obsolete", "o\n")],
        "*** Begin Patch\n*** Delete File: obsolete\n*** End Patch",
        Ok(&[("keep", "k\n")]),
    );
    scenario(
        &[("lines", "one\ntwo\nthree\n")],
        "*** Begin Patch\n*** Update File: lines\n@@\n one\n-two\n three\n*** End Patch",
        Ok(&[("lines", "one\nthree\n")]),
    );
    scenario(
        &[("tail", "first\nsecond\n")],
        "*** Begin Patch\n*** Update File: tail\n@@\n first\n-second\n+second updated\n*** End of File\n*** End Patch",
        Ok(&[("tail", "first\nsecond updated\n")]),
    );
    // A heredoc that came along.
    scenario(
        &[],
        "<<'EOF'\n*** Begin Patch\n*** Add File: x\n+y\n*** End Patch\nEOF",
        Ok(&[("x", "y\n")]),
    );
    // Each change sees what those before it did.
    scenario(
        &[("a", "1\n")],
        "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-1\n+2\n*** Update File: b\n*** Move to: a\n@@\n-2\n+3\n*** End Patch",
        Ok(&[("a", "3\n")]),
    );
}

#[test]
fn scenarios_that_are_refused() {
    let lines: &[(&str, &str)] = &[("modify", "line1\nline2\n"), ("dir/file", "x\n")];
    let malformed = Err(PatchRefusalCause::Malformed);
    let body = |body: &str| format!("*** Begin Patch\n{body}\n*** End Patch");
    scenario(
        lines,
        "*** Begin Patch\n*** End Patch",
        Err(PatchRefusalCause::Empty),
    );
    scenario(
        lines,
        &body("*** Update File: modify\n@@\n-missing\n+changed"),
        Err(PatchRefusalCause::NoMatch),
    );
    scenario(
        lines,
        &body("*** Delete File: missing"),
        Err(PatchRefusalCause::Missing),
    );
    scenario(lines, &body("*** Update File: foo"), malformed);
    scenario(
        lines,
        &body("*** Update File: missing\n@@\n-old\n+new"),
        Err(PatchRefusalCause::Missing),
    );
    scenario(
        lines,
        &body("*** Delete File: dir"),
        Err(PatchRefusalCause::BadPath),
    );
    scenario(lines, &body("*** Frobnicate File: foo"), malformed);
    // Codex leaves the first file behind; here nothing is done.
    scenario(
        lines,
        &body("*** Add File: created\n+hello\n*** Update File: missing\n@@\n-old\n+new"),
        Err(PatchRefusalCause::Missing),
    );
    for patch in [
        "",
        "no patch",
        "*** Begin Patch\n*** Add File: x\n+y",
        "x\n*** Begin Patch\n*** Add File: x\n+y\n*** End Patch",
        "<<'END'\n*** Begin Patch\n*** Add File: x\n+y\n*** End Patch\nEND",
    ] {
        scenario(lines, patch, malformed);
    }
    for wrong in [
        "*** Update File: modify\n@@",
        "*** Update File: modify\n@@ a\n@@ b\n-line1",
        "*** Update File: modify\n@@\n-line1\n\tline",
        "*** Update File: modify\nline1",
        "*** Add File: x\n+y\n\n*** Add File: z",
        "*** Environment ID: \n*** Delete File: modify",
        "*** Delete File: modify\n*** End Patch\n*** Delete File: dir/file",
    ] {
        scenario(lines, &body(wrong), malformed);
    }
}

/// Codex takes paths for addresses: tabs in them say nothing.
#[test]
fn tabs_in_paths_are_passed_over() {
    let names = |patch: &str| -> Vec<String> {
        let before = files(&[("n", "1\n"), ("sub/a", "1\n")]);
        let plan = checked(&memory(&before), patch).unwrap();
        plan.steps
            .iter()
            .map(|step| step.path.to_string())
            .collect()
    };
    let add = |path: &str| format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch");
    assert_eq!(names(&add("\tm")), ["m"]);
    assert_eq!(names(&add("s\tub/\tx\t")), ["sub/x"]);
    assert_eq!(names(&add("sub/.\t./z")), ["z"]);
    assert_eq!(names(&add("\t/root-of-memory/x")), ["root-of-memory/x"]);
    let moved =
        "*** Begin Patch\n*** Update File: \tn\n*** Move to: \tm\n@@\n-1\n+2\n*** End Patch";
    assert_eq!(names(moved), ["m", "n"]);
}
