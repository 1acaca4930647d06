//! The `schema` kind: documents of every form against schemas, and what is said of what does
//! not fit.

#![expect(
    clippy::unwrap_used,
    reason = "what a test needs to be there may fail as loudly as the test"
)]

mod world;

use checkrein_core::evidence::{CheckRetryability, InconclusiveCause, MAX_FINDINGS, Verdict};
use checkrein_verifiers::VerifierReport;
use serde_json::{Value, json};
use world::VerifierFixture;

fn definition(schema: &Value, target: &str) -> String {
    json!({ "schema": "s.json", "text": schema.to_string(), "target": target }).to_string()
}

/// `place rule: message` of each finding.
fn said(report: &VerifierReport) -> Vec<String> {
    let line = |finding: &checkrein_core::evidence::Finding| {
        let rule = finding.rule.as_deref().unwrap_or("-");
        match (&finding.file, finding.line) {
            (Some(file), Some(line)) => format!("{file}:{line} {rule}: {}", finding.message),
            (Some(file), None) => format!("{file} {rule}: {}", finding.message),
            (None, Some(line)) => format!("{line} {rule}: {}", finding.message),
            (None, None) => format!("{rule}: {}", finding.message),
        }
    };
    report.findings.iter().map(line).collect()
}

#[track_caller]
fn check(schema: &Value, name: &str, text: &str, expected: &[&str]) -> VerifierReport {
    let mut world = VerifierFixture::new();
    match name {
        "message" => world.message = Some(text.to_owned()),
        name => world.write(name, text),
    }
    let report = world.verify("schema", &definition(schema, name));
    assert_eq!(said(&report), expected, "{report:?}");
    let verdict = if expected.is_empty() {
        Verdict::Pass
    } else {
        Verdict::Fail
    };
    assert_eq!(
        (report.verdict, report.cause, report.retryable),
        (verdict, None, CheckRetryability::Yes)
    );
    assert_eq!(report.findings_total as usize, expected.len());
    report
}

#[test]
fn each_demand_says_what_is_there_and_what_is_wanted() {
    let one = |keywords: Value, value: Value, expected: &str| {
        let schema = json!({ "properties": { "a": keywords } });
        let text = json!({ "a": value }).to_string();
        check(&schema, "a.json", &text, &[expected]);
    };
    one(
        json!({ "minItems": 3, "description": "what was\nfinished" }),
        json!(["x"]),
        "a.json:1 minItems: /a: 1 item where at least 3 must be (what was finished)",
    );
    one(
        json!({ "maxItems": 1 }),
        json!([1, 2]),
        "a.json:1 maxItems: /a: 2 items where at most 1 may be",
    );
    one(
        json!({ "minLength": 4 }),
        json!("äöü"),
        "a.json:1 minLength: /a: 3 characters where at least 4 must be",
    );
    one(
        json!({ "type": ["array", "null"] }),
        json!("x"),
        "a.json:1 type: /a: \"x\" is no null or array",
    );
    one(
        json!({ "pattern": "^https://" }),
        json!("ftp://x"),
        "a.json:1 pattern: /a: \"ftp://x\" does not match ^https://",
    );
    one(
        json!({ "format": "uri" }),
        json!("no uri"),
        "a.json:1 format: /a: \"no uri\" is no valid uri",
    );
    one(
        json!({ "format": "date" }),
        json!("2026-02-30"),
        "a.json:1 format: /a: \"2026-02-30\" is no valid date",
    );
    one(
        json!({ "enum": ["red", "green"] }),
        json!("blue"),
        "a.json:1 enum: /a: \"blue\" is none of \"red\", \"green\"",
    );
    one(
        json!({ "minimum": 0 }),
        json!(-1),
        "a.json:1 minimum: /a: -1 is less than 0",
    );
    one(
        json!({ "uniqueItems": true }),
        json!([1, 1]),
        "a.json:1 uniqueItems: /a: has the same item twice",
    );
    one(
        json!({ "contains": { "pattern": "^https:" }, "minContains": 2 }),
        json!(["https://a", "b"]),
        "a.json:1 contains: /a: fewer than 2 of its 2 items fit {\"pattern\":\"^https:\"}",
    );
    one(
        json!({ "additionalProperties": false }),
        json!({ "x": 1 }),
        "a.json:1 falseSchema: /a: may not have any properties",
    );
    one(
        json!({ "additionalProperties": false, "properties": { "z": {} } }),
        json!({ "x": 1, "y": 2 }),
        "a.json:1 additionalProperties: /a: may not have 'x', 'y'",
    );
    one(
        json!({ "anyOf": [{ "type": "null" }, { "type": "string", "minLength": 2 }] }),
        json!("x"),
        "a.json:1 anyOf: /a: fits none of 2 alternatives; the nearest: 1 character where at least 2 must be",
    );
    one(
        json!(false),
        json!(1),
        "a.json:1 falseSchema: /a: may not be there",
    );
    one(
        json!({ "propertyNames": { "pattern": "^a" } }),
        json!({ "b": 1 }),
        "a.json:1 propertyNames: /a: the name \"b\" does not match ^a",
    );
}

#[test]
fn what_an_author_says_is_found_through_references() {
    let schema = json!({
        "$ref": "#/$defs/report",
        "$defs": { "report": {
            "required": ["done"],
            "properties": { "done": { "$ref": "#/$defs/list", "description": "things finished" } },
        }, "list": { "minItems": 2, "description": "a line each" } },
    });
    let expected = "a.json:1 required: 'done' is missing (things finished)";
    check(&schema, "a.json", "{}", &[expected]);
    let expected = "a.json:1 minItems: /done: 0 items where at least 2 must be (a line each)";
    check(&schema, "a.json", "{\"done\": []}", &[expected]);
}

#[test]
fn findings_stand_where_they_are_and_keep_their_names() {
    let schema = json!({
        "required": ["b"],
        "properties": { "a": { "items": { "minLength": 2 } } },
        "allOf": [{ "properties": { "x": { "pattern": "^1" } } }, { "properties": { "x": { "pattern": "2$" } } }],
    });
    let text = "{\n  \"a\": [\n    \"ok\",\n    \"x\"\n  ],\n  \"x\": \"3\"\n}\n";
    let report = check(
        &schema,
        "out/a.json",
        text,
        &[
            "out/a.json:1 required: 'b' is missing",
            "out/a.json:4 minLength: /a/1: 1 character where at least 2 must be",
            "out/a.json:6 pattern: /x: \"3\" does not match 2$",
            "out/a.json:6 pattern: /x: \"3\" does not match ^1",
        ],
    );
    let ids: Vec<&str> = report.findings.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "/ required b",
            "/a/1 minLength 2",
            "/x pattern 2$",
            "/x pattern ^1"
        ]
    );
    let moved = format!("\n\n{text}");
    let mut world = VerifierFixture::new();
    world.write("out/a.json", moved);
    world.message = None;
    let moved = world.verify("schema", &definition(&schema, "out/a.json"));
    let keys = |report: &VerifierReport| -> Vec<_> {
        report
            .findings
            .iter()
            .map(|one| one.failure_key())
            .collect()
    };
    assert_eq!(keys(&moved), keys(&report));
}

#[test]
fn a_file_that_cannot_be_judged_is_a_finding() {
    let any = json!({ "type": "object" });
    let wanted = "; what is wanted is described in s.json";
    check(
        &any,
        "a.json",
        "{\n \"a\": 1,\n}",
        &[&format!(
            "a.json:3 -: a.json is not JSON: trailing comma (column 1){wanted}"
        )],
    );
    let world = VerifierFixture::new();
    let verify = |name: &str| world.verify("schema", &definition(&any, name));
    assert_eq!(
        said(&verify("out/gone.json")),
        [format!(
            "out/gone.json -: out/gone.json is not there: write it{wanted}"
        )]
    );
    world.write("bytes.json", b"{\n\"\xff\"}");
    assert_eq!(
        said(&verify("bytes.json")),
        [format!(
            "bytes.json:2 -: bytes.json is not UTF-8 text{wanted}"
        )]
    );
    world.write("large.json", "1".repeat((1 << 20) + 1));
    assert_eq!(
        said(&verify("large.json")),
        [format!(
            "large.json -: large.json is larger than 1 MiB: make it shorter{wanted}"
        )]
    );
    std::fs::create_dir(world.path("folder.json")).unwrap();
    assert_eq!(
        said(&verify("folder.json")),
        [format!(
            "folder.json -: folder.json is no regular file: put a file there{wanted}"
        )]
    );
    for name in ["out/gone.json", "bytes.json", "large.json", "folder.json"] {
        assert_eq!(verify(name).verdict, Verdict::Fail, "{name}");
    }
}

#[test]
#[cfg(unix)]
fn nothing_is_read_through_a_link_and_no_pipe_is_waited_for() {
    let world = VerifierFixture::new();
    let outside = world.outside().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a.json"), "{}").unwrap();
    std::os::unix::fs::symlink(&outside, world.path("out")).unwrap();
    std::os::unix::fs::symlink(outside.join("a.json"), world.path("a.json")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(world.path("pipe.json"))
        .status();
    assert!(made.unwrap().success());
    for (name, expected) in [
        ("out/a.json", "symbolic link"),
        ("a.json", "symbolic link"),
        ("pipe.json", "is no regular file"),
    ] {
        let report = world.verify("schema", &definition(&json!({ "type": "object" }), name));
        assert_eq!(report.verdict, Verdict::Fail, "{name}");
        assert!(said(&report)[0].contains(expected), "{report:?}");
    }
}

#[test]
fn a_schema_that_was_not_there_can_never_be_met() {
    let world = VerifierFixture::new();
    world.write("a.json", "{}");
    let definition = json!({ "schema": "s.json", "text": null, "target": "a.json" }).to_string();
    let report = world.verify("schema", &definition);
    assert_eq!(
        (report.verdict, report.cause, report.retryable),
        (
            Verdict::Inconclusive,
            Some(InconclusiveCause::MissingFile),
            CheckRetryability::No
        )
    );
    assert!(
        report.excerpt.contains("s.json was not there"),
        "{report:?}"
    );
}

#[test]
fn a_message_is_json_or_sections() {
    let schema = json!({ "required": ["done"] });
    let json = "'done' is missing";
    check(&schema, "message", "{\"done\": 1}", &[]);
    check(
        &schema,
        "message",
        " \n[\n",
        &[
            "3 -: the final message is not JSON: EOF while parsing a list (column 0); what is wanted is described in s.json",
        ],
    );
    check(&schema, "message", "{}", &[&format!("1 required: {json}")]);
    check(
        &schema,
        "message",
        "All done:\n\n```json\n{\"done\": 1}\n```\n",
        &[],
    );
    check(
        &schema,
        "message",
        "All done:\n\n```json\n\n{}\n```\n",
        &[&format!("5 required: {json}")],
    );
    check(
        &schema,
        "message",
        "```json\n{}\n```\n```json\n{}\n```\n",
        &[
            "-: the final message holds 2 ```json blocks: leave only the one that is meant; what is wanted is described in s.json",
        ],
    );
    check(&schema, "message", "## Done\nall\n", &[]);
    check(
        &schema,
        "message",
        "I am done.",
        &["required: the section 'done' is missing: add a heading of that name"],
    );
    check(
        &schema,
        "message",
        "  \n",
        &["-: the final message is empty; what is wanted is described in s.json"],
    );
}

#[test]
fn sections_are_spoken_of_as_sections() {
    let list = |least: u64| json!({ "properties": { "items": { "minItems": least } } });
    let schema = json!({
        "required": ["done", "links"],
        "properties": {
            "done": list(3),
            "blockers": { "properties": { "text": { "minLength": 10 } } },
            "metrics": { "properties": { "rows": { "items": { "properties": { "value": { "pattern": "^[0-9]+$" } } } } } },
            "plans": { "properties": { "items": { "items": { "minLength": 9 } } } },
        },
    });
    let text = "# Week\n## Done\n- one\n\n## Blockers\nnone\n\n## Metrics\n|name|value|\n|-|-|\n|a|1|\n|b|two|\n\n## Plans\n- a plan at length\n- short\n";
    check(
        &schema,
        "report.md",
        text,
        &[
            "report.md required: the section 'links' is missing: add a heading of that name",
            "report.md:2 minItems: section 'done', items: 1 item where at least 3 must be",
            "report.md:5 minLength: section 'blockers', text: 4 characters where at least 10 must be",
            "report.md:12 pattern: section 'metrics', row 2, column 'value': \"two\" does not match ^[0-9]+$",
            "report.md:16 minLength: section 'plans', item 2: 5 characters where at least 9 must be",
        ],
    );
}

#[test]
fn many_findings_are_counted_and_listed_in_the_log() {
    let world = VerifierFixture::new();
    let values: Vec<u64> = (0..200).collect();
    world.write("a.json", serde_json::to_string_pretty(&values).unwrap());
    let schema = json!({ "items": { "minimum": 1000 } });
    let report = world.verify("schema", &definition(&schema, "a.json"));
    assert_eq!(report.findings.len(), MAX_FINDINGS);
    assert_eq!(report.findings_total, 200);
    assert_eq!(report.findings[0].line, Some(2));
    let log = std::fs::read_to_string(world.path(report.log.as_deref().unwrap())).unwrap();
    assert_eq!(log.lines().count(), 200);
    assert!(
        log.contains("a.json:201: minimum: /199: 199 is less than 1000\n"),
        "{log}"
    );
}

#[test]
fn what_nests_as_deep_as_it_may_is_judged() {
    // As many references in a row as there may be, once for each level of the document.
    let last = 998;
    let mut defs: serde_json::Map<String, Value> = (0..last)
        .map(|at| {
            let next = format!("#/$defs/d{}", at + 1);
            (format!("d{at}"), json!({ "allOf": [{ "$ref": next }] }))
        })
        .collect();
    defs.insert(
        format!("d{last}"),
        json!({ "items": { "$ref": "#/$defs/d0" }, "maxItems": 1 }),
    );
    let schema = json!({ "$defs": defs, "$ref": "#/$defs/d0" });
    let mut world = VerifierFixture::new();
    world.message = Some(format!("{}{}", "[".repeat(120), "]".repeat(120)));
    let report = world.verify("schema", &definition(&schema, "message"));
    assert_eq!(report.verdict, Verdict::Pass, "{report:?}");
    world.message = Some("[".repeat(100_000));
    let report = world.verify("schema", &definition(&schema, "message"));
    assert_eq!(report.verdict, Verdict::Fail, "{report:?}");
    assert!(said(&report)[0].contains("recursion limit"), "{report:?}");
}

#[test]
fn told_to_stop_it_comes_back() {
    let mut world = VerifierFixture::new();
    world.message = Some("{}".to_owned());
    world.cancelled = true.into();
    let unfolds = include_str!("unfolds.json");
    let report = world.verify("schema", unfolds);
    assert_eq!(report.cause, Some(InconclusiveCause::ReplyDeadline));
    world.cancelled = false.into();
    world.deadline = Some(std::time::Instant::now());
    let report = world.verify("schema", unfolds);
    assert_eq!(report.cause, Some(InconclusiveCause::ReplyDeadline));
}

/// Each of its definitions asks the next one three times, and the last one is met by no object.
fn unfolding(keyword: &str) -> Value {
    let mut defs: serde_json::Map<String, Value> = (0..30)
        .map(|at| {
            let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
            (format!("d{at}"), json!({ keyword: [next, next, next] }))
        })
        .collect();
    defs.insert("d30".to_owned(), json!({ "type": "string" }));
    json!({ "$defs": defs, "$ref": "#/$defs/d0" })
}

#[test]
fn what_unfolds_without_end_is_listed_within_bounds() {
    let report = check(
        &unfolding("allOf"),
        "a.json",
        "{}",
        &["a.json:1 type: it does not fit, and more is wrong than can be listed: {} is no string"],
    );
    assert_eq!(report.findings[0].id, "/ too much");
    let mut world = VerifierFixture::new();
    world.message = Some("{}".to_owned());
    let report = world.verify("schema", &definition(&unfolding("anyOf"), "message"));
    assert_eq!(
        (report.verdict, report.cause),
        (Verdict::Inconclusive, Some(InconclusiveCause::Timeout))
    );
    assert!(report.excerpt.contains("make it simpler"), "{report:?}");
}

#[test]
fn a_long_document_is_listed_within_bounds() {
    let text = serde_json::to_string(&vec![1; 500_000]).unwrap();
    let schema = json!({ "items": { "type": "string" } });
    check(
        &schema,
        "a.json",
        &text,
        &[
            "a.json:1 type: it does not fit, and more is wrong than can be listed: /0: 1 is no string",
        ],
    );
    check(
        &json!({ "items": { "type": "number" } }),
        "a.json",
        &text,
        &[],
    );
}

#[test]
fn what_may_not_be_is_told_as_it_was_written() {
    check(
        &json!({ "not": { "required": ["a"] } }),
        "a.json",
        "{\"a\": 1}",
        &["a.json:1 not: an object fits what it may not: {\"required\":[\"a\"]}"],
    );
}

#[test]
fn json_that_two_readers_take_for_two_things_does_not_fit() {
    let schema = json!({ "properties": { "a": { "const": 1 } } });
    let wanted = "; what is wanted is described in s.json";
    let twice = "a.json: 'a' is named twice in one object: keep one of them";
    check(
        &schema,
        "a.json",
        "{\"a\": 2,\n\"a\": 1}",
        &[&format!("a.json:2 -: {twice}{wanted}")],
    );
    let digits = "has more digits than can be compared: write it as a string";
    check(
        &json!({ "required": ["n"] }),
        "a.json",
        "{\"n\": 123456789012345678901234567891}",
        &[&format!(
            "a.json:1 -: a.json: the number 123456789012345678901234567891 {digits}{wanted}"
        )],
    );
}
