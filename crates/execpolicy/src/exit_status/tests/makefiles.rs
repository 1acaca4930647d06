//! What make runs, and what it leaves alone.

use super::read;

/// What is said of `make test` with this makefile and these other files.
fn made(makefile: &str, files: &[&str]) -> Vec<String> {
    made_by("make test", makefile, files)
}

fn made_by(call: &str, makefile: &str, files: &[&str]) -> Vec<String> {
    let others = files.iter().map(|name| (*name, ""));
    let all: Vec<(&str, &str)> = std::iter::once(("Makefile", makefile))
        .chain(others)
        .collect();
    read(call, &all)
}

fn is_doubted(told: &[String]) -> bool {
    let doubted = |told: &String| told.contains(" <- ") || told.contains(" ?");
    told.iter().any(doubted)
}

#[test]
fn targets_that_are_there() {
    let mut wrong = Vec::new();
    for (makefile, files) in [
        ("test:\n\tpytest\n", &["test/a.py"][..]),
        ("test:\n\truff check\n", &["test"]),
        ("test:\n\t./run.sh\n", &["test", "run.sh"]),
        ("test: setup.py\n\tpytest\n", &["test", "setup.py"]),
        ("test: | out\n\truff check\n", &["test", "out"]),
        ("all: test\ntest: unit\nunit:\n\tpytest\n", &["unit"]),
        ("te%:\n\tpytest\n", &["test"]),
        ("TARGET = test\n$(TARGET):\n\tpytest || true\n", &[]),
        // No rule, or none that does anything.
        ("all:\n\tpytest\n", &["test"]),
        ("all:\n\tpytest\n", &["test.sh"]),
        (".PHONY: test\ntest:\n", &[]),
        (".PHONY: test\ntest: lint\nlint: $(FILES)\n", &[]),
        (".RECIPEPREFIX = >\ntest:\n>pytest\n", &[]),
    ] {
        let told = made(makefile, files);
        if !is_doubted(&told) {
            wrong.push(format!("{makefile:?}: {told:?}"));
        }
    }
    for (makefile, files) in [
        ("test:\n\tpytest\n", &["tests/a.py"][..]),
        (".PHONY: test\ntest:\n\tpytest\n", &["test/a.py"]),
        (
            ".PHONY: all $(CHECKS)\nCHECKS = test\ntest:\n\tpytest\n",
            &["tests"],
        ),
        ("test: FORCE\n\tpytest\nFORCE:\n", &["test"]),
        ("test::\n\tpytest\n", &["test"]),
        ("test: a.o\n\tpytest\na.o: a.c\n\tcc a.c\n", &["a.c", "a.o"]),
        (
            ".PHONY: test unit\ntest: unit\nunit:\n\tpytest\n",
            &["unit"],
        ),
        ("TARGET = test\n$(TARGET):\n\tpytest\n", &[]),
    ] {
        let told = made(makefile, files);
        if is_doubted(&told) || told.is_empty() {
            wrong.push(format!("{makefile:?}: {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Variables that make sets, or that nobody does, hide nothing.
#[test]
fn what_make_puts_in_hides_nothing() {
    let mut wrong = Vec::new();
    for makefile in [
        "app: a.c\n\tcc -o $@ $<\n.PHONY: test\ntest: app\n\tpytest\n",
        "build/%.o: %.c\n\t$(CC) $(CFLAGS) -c $< -o $@\ntest: build/a.o\n\t@mkdir -p $(@D)\n\tpytest\n",
        "test:\n\tpytest $(ARGS) .\n",
        "lint:\n\truff check ${ARGS} .\ntest: lint\n\tpytest\n",
    ] {
        let told = made(makefile, &[]);
        if is_doubted(&told) {
            wrong.push(format!("{makefile:?}: {told:?}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn makefile_branches_that_may_hide_failures() {
    let mut wrong = Vec::new();
    for makefile in [
        "test:\nifdef CI\n\tpytest\nendif\n",
        "test:\nifndef SKIP\n\truff check\nelse\n\t@echo skipped\nendif\n",
        "ifdef SKIP\ntest:\n\t@echo\nelse\ntest:\n\tpytest\nendif\n",
        "ifneq ($(CI),)\ntest:\n\tpytest\nendif\n",
        "ifdef SKIP\nRUN = true\nelse\nRUN = pytest\nendif\ntest:\n\t$(RUN)\n",
        "RUN = pytest\nifdef SKIP\nRUN = true\nendif\ntest:\n\t$(RUN)\n",
        "test:\n\t$(if $(SKIP),true,pytest)\n",
        "test:\n\t$(if $(CI),pytest)\n",
        "RUN = pytest\nRUN = pytest || true\ntest:\n\t$(RUN)\n",
        "RUN = pytest\nRUN += || true\ntest:\n\t$(RUN)\n",
        ".ONESHELL:\ntest:\nifdef CI\n\tpytest\nendif\n",
        "SHELL = ./bash\ntest:\n\tpytest\n",
        "SHELL != which true\ntest:\n\tpytest\n",
        "define SHELL\n/bin/true\nendef\ntest:\n\tpytest\n",
        "SHELL = bash -n\ntest:\n\tpytest\n",
        "$(eval SHELL = /bin/true)\ntest:\n\tpytest\n",
        ".SHELLFLAGS = -nc\ntest:\n\tpytest\n",
        ".SHELLFLAGS = -c true\ntest:\n\tpytest\n",
        ".SHELLFLAGS = --version -c\ntest:\n\tpytest\n",
        ".SHELLFLAGS = -o noexec -c\ntest:\n\tpytest\n",
        "test: .SHELLFLAGS = -nc\ntest:\n\tpytest\n",
        "export BASH_ENV = quit.sh\nSHELL = bash\ntest:\n\tpytest\n",
    ] {
        let told = made(makefile, &[]);
        if !is_doubted(&told) {
            wrong.push(format!("{makefile:?}: {told:?}"));
        }
    }
    for call in [
        "make .SHELLFLAGS=-nc test",
        "make RUN='pytest || true' test",
        "make -o test test",
        "make --old-file=test test",
        "make -v test",
        "make --eval='SHELL=true' test",
    ] {
        let told = made_by(call, "RUN = pytest\ntest:\n\t$(RUN)\n", &["test"]);
        if !is_doubted(&told) {
            wrong.push(format!("{call}: {told:?}"));
        }
    }
    for makefile in [
        "test:\nifdef CI\n\tpytest --ci\nelse\n\tpytest\nendif\n",
        "ifeq ($(OS),Windows_NT)\nPYTHON = python\nelse\nPYTHON = python3\nendif\ntest:\n\t$(PYTHON) -m ruff check\n",
        "ifdef V\nQ =\nelse\nQ = @\nendif\ntest:\n\t$(Q)pytest\n",
        "ifdef CI\ntest:\n\tpytest --ci\nelse\ntest:\n\tpytest\nendif\n",
        "test:\nifdef CI\n\t@echo ci\nendif\n\tpytest\n",
        "RUN ?= pytest\nRUN ?= true\ntest:\n\t$(RUN) -q\n",
        "FLAGS = -q\nifdef V\nFLAGS += -v\nendif\ntest:\n\tpytest $(FLAGS)\n",
        "SHELL := /usr/bin/env bash\n.SHELLFLAGS := -eu -o pipefail -c\ntest:\n\tpytest | tee log\n",
        "SHELL = /bin/bash -o pipefail\ntest:\n\tpytest\n",
        "test: export PYTHONPATH = src\ntest:\n\tpytest\n",
        ".DEFAULT_GOAL := help\ntest:\n\t$(if $(CI),pytest --ci,pytest)\n",
    ] {
        let told = made(makefile, &[]);
        if is_doubted(&told) || told.is_empty() {
            wrong.push(format!("{makefile:?}: {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
