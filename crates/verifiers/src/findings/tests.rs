//! Outputs as tools print them, and the findings that are made of them.

use super::FindingReader;

/// A tree in which the named files exist.
fn tree(files: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for file in files {
        let path = root.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    root
}

/// `id | file:line | rule | message` of each finding.
fn check(files: &[&str], output: &str, expected: &[&str]) {
    let root = tree(files);
    let mut reader = FindingReader::new(root.path());
    output
        .lines()
        .for_each(|line| reader.scan_line_for_findings(line));
    let (findings, total) = reader.into_findings_and_total();
    let shown: Vec<String> = findings
        .iter()
        .map(|f| {
            format!(
                "{} | {}:{} | {} | {}",
                f.id,
                f.file.as_deref().unwrap_or("-"),
                f.line.map_or("-".to_owned(), |line| line.to_string()),
                f.rule.as_deref().unwrap_or("-"),
                f.message
            )
        })
        .collect();
    assert_eq!(shown, expected, "{output}");
    assert_eq!(total as usize, expected.len());
}

#[test]
fn rustc() {
    check(
        &["src/main.rs"],
        "warning: unused variable: `x`\n --> src/main.rs:2:9\n\n\
         error[E0308]: mismatched types\n  --> src/main.rs:14:18\n   |\n14 |     let x: u8 = \"\";\n\n\
         error: aborting due to 1 previous error\n\nerror: could not compile `a`\n",
        &["E0308: mismatched types | src/main.rs:14 | E0308 | mismatched types"],
    );
}

#[test]
fn cargo_test_joins_panic_and_name() {
    check(
        &["src/lib.rs"],
        "running 2 tests\ntest a::ok ... ok\ntest a::sums ... FAILED\n\nfailures:\n\n---- a::sums stdout ----\n\n\
         thread 'a::sums' (4711) panicked at src/lib.rs:10:5:\nassertion `left == right` failed\n  left: 3\n right: 4\n\n\
         failures:\n    a::sums\n\ntest result: FAILED. 1 passed; 1 failed;\n",
        &["a::sums | src/lib.rs:10 | a::sums | assertion `left == right` failed"],
    );
    check(
        &[],
        "test src/lib.rs - f (line 12) ... FAILED",
        &["src/lib.rs - f (line #) | -:- | src/lib.rs - f (line 12) | failed"],
    );
    // `--quiet` names its tests in the closing list only.
    check(
        &["src/lib.rs"],
        "running 1 test\nF\nfailures:\n\n---- adds stdout ----\n\nthread 'adds' (9) panicked at src/lib.rs:7:5:\n\
         assertion `left == right` failed\n  left: 0\n right: 4\nstack backtrace:\n   0: main\n\n\nfailures:\n    adds\n\n\
         test result: FAILED. 0 passed; 1 failed;\n",
        &["adds | src/lib.rs:7 | adds | assertion `left == right` failed"],
    );
    check(
        &[],
        "        FAIL [   0.004s] (1/2) my-crate tests::two\n",
        &["tests::two | -:- | tests::two | failed"],
    );
}

#[test]
fn pytest() {
    check(
        &["tests/test_a.py", "app/core.py"],
        "=================== FAILURES ===================\n___________ TestA.test_sum[1-x y] ___________\n\n\
         self = <TestA>\n    def test_sum(self, n):\n>       assert add(1, 2) == 4\nE       assert 3 == 4\n\n\
         tests/test_a.py:12: AssertionError\n___________ test_io ___________\n\
         tests/test_a.py:20: in test_io\n    load()\nE   OSError: gone\n\napp/core.py:3: OSError\n\
         =========== short test summary info ===========\n\
         FAILED tests/test_a.py::TestA::test_sum[1-x y] - assert 3 == 4\n\
         FAILED tests/test_a.py::test_io - OSError: gone\n\
         ERROR tests/test_a.py\n\
         ===== 2 failed, 1 error in 0.10s =====\n",
        &[
            "tests/test_a.py::TestA::test_sum[1-x y] | tests/test_a.py:12 | tests/test_a.py::TestA::test_sum[1-x y] | assert 3 == 4",
            "tests/test_a.py::test_io | tests/test_a.py:- | tests/test_a.py::test_io | OSError: gone",
            "tests/test_a.py | tests/test_a.py:- | tests/test_a.py | failed",
        ],
    );
}

#[test]
fn python_traceback_and_unittest() {
    check(
        &["app/core.py"],
        "Traceback (most recent call last):\n  File \"app/core.py\", line 3, in main\n    f()\n    ~^^\n\
         \x20 File \"/usr/lib/python3/json/x.py\", line 355, in f\n    raise\njson.decoder.JSONDecodeError: Expecting value: line 1\nafter\n",
        &[
            "json.decoder.JSONDecodeError: Expecting value: line # | app/core.py:3 | json.decoder.JSONDecodeError | Expecting value: line 1",
        ],
    );
    check(
        &["a.py"],
        "  File \"a.py\", line 1\n    def (\n        ^\nSyntaxError: invalid syntax\n",
        &["SyntaxError: invalid syntax | a.py:1 | SyntaxError | invalid syntax"],
    );
    check(
        &[],
        "FAIL: test_x (tests.a.TestA.test_x)\nERROR: test_y (tests.a.TestA)\n",
        &[
            "tests.a.TestA.test_x | -:- | tests.a.TestA.test_x | failed",
            "tests.a.TestA.test_y | -:- | tests.a.TestA.test_y | failed",
        ],
    );
}

#[test]
fn go_tap_jest_vitest() {
    check(
        &["a_test.go"],
        "--- FAIL: TestX (0.00s)\n    a_test.go:9: got 3\n    --- FAIL: TestX/sub (0.00s)\n        a_test.go:12: got 4\nFAIL\nFAIL\texample.com/a\t0.002s\n",
        &[
            "TestX | a_test.go:9 | TestX | got 3",
            "TestX/sub | a_test.go:12 | TestX/sub | got 4",
        ],
    );
    check(
        &[],
        "TAP version 13\nok 1 - a\nnot ok 2 - adds numbers\nnot ok 3 - later # TODO\n",
        &["adds numbers | -:- | adds numbers | failed"],
    );
    check(
        &["src/a.test.js"],
        " FAIL  src/a.test.js\n  \u{25cf} math \u{203a} adds\n\n    expect(received).toBe(expected)\n\n    Expected: 4\n\n      at Object.<anonymous> (src/a.test.js:5:10)\n\nTests:       1 failed, 1 total\n",
        &[
            "math \u{203a} adds | src/a.test.js:5 | math \u{203a} adds | expect(received).toBe(expected)",
        ],
    );
    check(
        &["src/a.test.ts"],
        " FAIL  src/a.test.ts > math > adds\nAssertionError: expected 3 to be 4\n",
        &["math > adds | src/a.test.ts:- | math > adds | failed"],
    );
}

#[test]
fn linters_and_compilers() {
    check(
        &["src/a.py", "src/a.ts", "main.c", "pkg/a.go"],
        "src/a.py:1:8: F401 [*] `os` imported but unused\n\
         src/a.py:4: error: Incompatible types in assignment  [assignment]\n\
         src/a.py:4: note: see the docs\n\
         src/a.ts(3,5): error TS2304: Cannot find name 'x'.\n\
         src/a.ts:7:1 - error TS1005: ';' expected.\n\
         main.c:3:5: warning: unused variable\n\
         main.c:9:5: error: 'y' undeclared\n\
         ./pkg/a.go:12:2: undefined: z\n\
         gone/b.c:1:1: error: no such thing\n\
         12:30:01: started\n\
         see http://localhost:8080: fine\n",
        &[
            "F401: `os` imported but unused | src/a.py:1 | F401 | `os` imported but unused",
            "assignment: Incompatible types in assignment | src/a.py:4 | assignment | Incompatible types in assignment",
            "TS2304: Cannot find name 'x'. | src/a.ts:3 | TS2304 | Cannot find name 'x'.",
            "TS1005: ';' expected. | src/a.ts:7 | TS1005 | ';' expected.",
            "'y' undeclared | main.c:9 | - | 'y' undeclared",
            "undefined: z | pkg/a.go:12 | - | undefined: z",
            "no such thing | -:1 | - | no such thing",
        ],
    );
    check(
        &["src/a.js"],
        "src/a.js\n  3:5  error  'x' is not defined  no-undef\n  4:1  warning  odd  no-odd\n",
        &["no-undef: 'x' is not defined | src/a.js:3 | no-undef | 'x' is not defined"],
    );
}

/// Law 4: whichever order parallel tests report in, the same ones are named.
#[test]
fn fifty_are_named_whatever_their_order_and_all_are_counted() {
    let root = tree(&[]);
    let keys = |numbers: &mut dyn Iterator<Item = u32>| {
        let mut reader = FindingReader::new(root.path());
        for number in numbers {
            reader.scan_line_for_findings(&format!("test t{number:05} ... FAILED"));
            reader.scan_line_for_findings(&format!("test t{number:05} ... FAILED"));
        }
        let (findings, total) = reader.into_findings_and_total();
        let mut keys: Vec<_> = findings
            .iter()
            .map(|finding| finding.failure_key())
            .collect();
        keys.sort_unstable();
        (keys, total)
    };
    let up = keys(&mut (0..300));
    assert_eq!(up, keys(&mut (0..300).rev()));
    assert_eq!((up.0.len(), up.1), (50, 300));
}

#[test]
fn an_id_survives_a_shift_of_lines() {
    let root = tree(&["a.c"]);
    let key = |line: &str| {
        let mut reader = FindingReader::new(root.path());
        reader.scan_line_for_findings(line);
        reader
            .into_findings_and_total()
            .0
            .first()
            .map(|finding| finding.failure_key())
    };
    let first = key("a.c:3:5: error: 'y' undeclared (17 ms)");
    assert!(first.is_some());
    assert_eq!(first, key("a.c:93:1: error: 'y' undeclared (21 ms)"));
    assert_ne!(first, key("a.c:3:5: error: 'z' undeclared (17 ms)"));
}

#[test]
fn a_unittest_is_one_finding_with_its_traceback() {
    check(
        &["test_adder.py"],
        "F\n======================================================================\n\
         FAIL: test_adds (test_adder.Adds.test_adds)\n\
         ----------------------------------------------------------------------\n\
         Traceback (most recent call last):\n  File \"test_adder.py\", line 8, in test_adds\n    self.assertEqual(add(2, 2), 4)\n\
         AssertionError: 0 != 4\n\n----------------------------------------------------------------------\nRan 1 test in 0.000s\n\nFAILED (failures=1)\n",
        &[
            "test_adder.Adds.test_adds | test_adder.py:8 | test_adder.Adds.test_adds | AssertionError: 0 != 4",
        ],
    );
}

#[test]
fn tests_of_node_by_name_and_place() {
    // As node 20 prints them, with less of each stack.
    check(
        &["a.test.mjs"],
        "TAP version 13\n# Subtest: outer\n    # Subtest: inner fails\n    not ok 1 - inner fails\n      ---\n      duration_ms: 25.3\n      location: 'a.test.mjs:3:38'\n      failureType: 'testCodeFailure'\n      error: '1 == 2'\n      stack: |-\n        TestContext.<anonymous> (a.test.mjs:3:73)\n      ...\n    # Subtest: fine\n    ok 2 - fine\n      ---\n      duration_ms: 0.1\n      ...\n    1..2\nnot ok 1 - outer\n  ---\n  duration_ms: 26.9\n  location: 'a.test.mjs:3:1'\n  failureType: 'subtestsFailed'\n  error: '1 subtest failed'\n  ...\n# Subtest: top\nnot ok 2 - top\n  ---\n  location: 'a.test.mjs:6:1'\n  error: |-\n    Expected values to be strictly equal:\n    \n    1 !== 2\n  ...\n1..2\n# tests 4\n# pass 1\n# fail 3\n",
        &[
            "outer > inner fails | a.test.mjs:3 | outer > inner fails | 1 == 2",
            "top | a.test.mjs:6 | top | Expected values to be strictly equal:",
        ],
    );
    check(
        &["a.test.mjs"],
        "\u{25b6} outer\n  \u{2716} inner fails (18.8ms)\n    AssertionError [ERR_ASSERTION]: 1 == 2\n        at TestContext.<anonymous> (a.test.mjs:3:73)\n\n\u{2716} outer (20.3ms)\n\u{2139} tests 2\n\u{2139} fail 2\n\n\u{2716} failing tests:\n\ntest at a.test.mjs:3:38\n\u{2716} inner fails (18.8ms)\n  AssertionError [ERR_ASSERTION]: 1 == 2\n      at TestContext.<anonymous> (a.test.mjs:3:73)\n",
        &["inner fails | a.test.mjs:3 | inner fails | AssertionError [ERR_ASSERTION]: 1 == 2"],
    );
}
