//! Code that is given to a tool under any name.

use serde_json::json;

use super::*;

fn command(tool: &str, args: Value) -> Option<ScriptOrArgvOfToolCall> {
    classify_call(tool, &args).command
}

fn one_liner(program: &str, option: &str, code: &str) -> Option<ScriptOrArgvOfToolCall> {
    let words = [program, option, code].map(str::to_owned);
    Some(ScriptOrArgvOfToolCall::Argv(words.to_vec()))
}

fn script(text: &str) -> Option<ScriptOrArgvOfToolCall> {
    Some(ScriptOrArgvOfToolCall::Script(text.to_owned()))
}

#[test]
fn code_is_the_one_liner_of_its_language() {
    let code = "import shutil; shutil.rmtree('/')";
    let python = one_liner("python3", "-c", code);
    for (tool, args) in [
        ("python", json!({"code": code})),
        ("python", json!({"cmd": code})),
        ("python", json!({"script": code})),
        ("python", json!({"source": code})),
        ("ipython", json!({"cell": code})),
        ("PythonREPL", json!({"input": code})),
        ("python_repl", json!({"command": code})),
        ("python_repl", json!({"query": code})),
        ("run_script", json!({"language": "python", "content": code})),
        ("run", json!({"language": "Python 3.12", "code": code})),
        ("run_code", json!({"language": "python", "script": code})),
    ] {
        for name in [format!("mcp__x__{tool}"), tool.to_owned()] {
            assert_eq!(command(&name, args.clone()), python, "{name} {args}");
        }
    }
    // Where nobody names the language it is read in both that are common.
    let quoted = code.replace('\'', "'\\''");
    let both = script(&format!(
        "'python3' '-c' '{quoted}'\n'node' '-e' '{quoted}'"
    ));
    for (tool, args) in [
        ("repl", json!({"code": code})),
        ("eval", json!({"code": code})),
        ("eval", json!({"expression": code})),
        ("exec", json!({"code": code})),
        ("execute", json!({"code": code})),
        ("execute_code", json!({"source": code})),
        ("run_code", json!({"script": code})),
        ("run_cell", json!({"cell": code})),
        ("executeCode", json!({"code": code})),
        ("code_interpreter", json!({"code": code})),
        ("code_execution", json!({"code": code})),
        ("run_snippet", json!({"snippet": code})),
        (
            "insert_execute_code_cell",
            json!({"cell_index": 1, "cell_source": code}),
        ),
        ("execute_code", json!({"request": {"code": code}})),
        ("execute_cells", json!({"cells": [{"source": code}]})),
    ] {
        for name in [format!("mcp__x__{tool}"), tool.to_owned()] {
            assert_eq!(command(&name, args.clone()), both, "{name} {args}");
        }
    }
    let lines = json!({"source": ["import shutil", "shutil.rmtree('/')"]});
    let joined = one_liner("python3", "-c", "import shutil\nshutil.rmtree('/')");
    assert_eq!(command("run_python_cell", lines), joined);
    for (tool, args, expected) in [
        ("node", json!({"code": "x"}), one_liner("node", "-e", "x")),
        ("run_js", json!({"code": "x"}), one_liner("node", "-e", "x")),
        (
            "deno_eval",
            json!({"code": "x"}),
            one_liner("node", "-e", "x"),
        ),
        ("ruby", json!({"code": "x"}), one_liner("ruby", "-e", "x")),
        ("php", json!({"code": "x"}), one_liner("php", "-r", "x")),
        (
            "exec",
            json!({"language": "python", "code": "x"}),
            one_liner("python3", "-c", "x"),
        ),
    ] {
        assert_eq!(command(tool, args.clone()), expected, "{tool} {args}");
    }
}

#[test]
fn what_calls_nothing_in_no_language_is_a_command() {
    for (tool, args) in [
        ("execute_code", json!({"code": "rm -rf /"})),
        ("repl", json!({"cmd": "rm -rf /"})),
        ("python", json!({"command": "rm -rf /"})),
        ("python", json!({"code": "!rm -rf /"})),
        ("execute_code", json!({"code": "%%bash\nrm -rf /"})),
        ("repl", json!({"code": "%sx rm -rf /"})),
    ] {
        assert_eq!(
            command(tool, args.clone()),
            script("rm -rf /"),
            "{tool} {args}"
        );
    }
    // What stands in quotes is not called.
    let awk = "rm -rf /; awk '{ print substr($1, 2) }'";
    assert_eq!(command("repl", json!({"cmd": awk})), script(awk));
    // Nothing hides behind another.
    assert_eq!(
        command("run_python", json!({"command": "ls", "code": "f()"})),
        script("ls\n'python3' '-c' 'f()'")
    );
    assert_eq!(
        command("ipython", json!({"cell": "x = f()\n!rm -rf /"})),
        script("'python3' '-c' 'x = f()'\nrm -rf /")
    );
}

#[test]
fn what_runs_no_code_here_has_no_command() {
    for (tool, args) in [
        ("note", json!({"code": "f()"})),
        ("explain_code", json!({"code": "f()"})),
        ("create_snippet", json!({"code": "f()"})),
        ("run_tests", json!({"code": "f()"})),
        ("run_report", json!({"code": "US"})),
        ("run_pipeline", json!({"source": "tests/a.py"})),
        ("execute_workflow", json!({"input": "please mend f(x)"})),
        ("run_code_search", json!({"query": "f(x)"})),
        ("mcp__playwright__browser_run_code", json!({"code": "f()"})),
        (
            "NotebookEdit",
            json!({"notebook_path": "a.ipynb", "new_source": "f()"}),
        ),
    ] {
        assert_eq!(command(tool, args.clone()), None, "{tool} {args}");
    }
}
