//! Holds the ten sample projects. The tests of each pass at its base, except for the last.

/// A sample project.
pub(super) struct SampleProject {
    pub(super) name: &'static str,
    /// Commands that succeed if the project's tools are installed.
    pub(super) needs: &'static [&'static str],
    /// Commands that a person has run before, to install dependencies.
    pub(super) prepare: &'static [&'static str],
    pub(super) files: &'static [(&'static str, &'static str)],
    /// The file that the agent edits, the line that is right in it, and what it makes of that.
    pub(super) source: &'static str,
    pub(super) right: &'static str,
    pub(super) wrong: &'static str,
    /// The project's own test, which the feedback has to name.
    pub(super) test: &'static str,
    /// Whether a test fails at the base.
    pub(super) red: bool,
}

pub(super) const PROJECTS: &[SampleProject] = &[
    SampleProject {
        name: "rust-library",
        needs: &["cargo --version"],
        prepare: &[],
        files: &[
            (".gitignore", "/target\n"),
            (
                "Cargo.toml",
                "[package]\nname = \"temperature\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            (
                "Cargo.lock",
                "version = 3\n\n[[package]]\nname = \"temperature\"\nversion = \"0.1.0\"\n",
            ),
            (
                "src/lib.rs",
                "/// Degrees Celsius in Fahrenheit.\npub fn fahrenheit(celsius: f64) -> f64 {\n    celsius * 9.0 / 5.0 + 32.0\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn water_boils() {\n        assert_eq!(super::fahrenheit(100.0), 212.0);\n    }\n}\n",
            ),
        ],
        source: "src/lib.rs",
        right: "    celsius * 9.0 / 5.0 + 32.0",
        wrong: "    celsius * 5.0 / 9.0 + 32.0",
        test: "water_boils",
        red: false,
    },
    SampleProject {
        name: "rust-workspace",
        needs: &["cargo --version"],
        prepare: &[],
        files: &[
            (".gitignore", "target/\n"),
            (
                "Cargo.toml",
                "[workspace]\nresolver = \"2\"\nmembers = [\"crates/*\"]\n",
            ),
            (
                "Cargo.lock",
                "version = 3\n\n[[package]]\nname = \"shout\"\nversion = \"0.1.0\"\ndependencies = [\n \"words\",\n]\n\n[[package]]\nname = \"words\"\nversion = \"0.1.0\"\n",
            ),
            (
                "crates/words/Cargo.toml",
                "[package]\nname = \"words\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            (
                "crates/words/src/lib.rs",
                "pub fn count(text: &str) -> usize {\n    text.split_whitespace().count()\n}\n",
            ),
            (
                "crates/shout/Cargo.toml",
                "[package]\nname = \"shout\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nwords = { path = \"../words\" }\n",
            ),
            (
                "crates/shout/src/lib.rs",
                "pub fn shout(text: &str) -> String {\n    format!(\"{}{}\", text.to_uppercase(), \"!\".repeat(words::count(text)))\n}\n",
            ),
            (
                "crates/shout/tests/shouting.rs",
                "#[test]\nfn one_mark_a_word() {\n    assert_eq!(shout::shout(\"come  here\"), \"COME  HERE!!\");\n}\n",
            ),
        ],
        source: "crates/words/src/lib.rs",
        right: "    text.split_whitespace().count()",
        // Only the other crate's test notices, so the whole workspace has to be tested.
        wrong: "    text.split(' ').count()",
        test: "one_mark_a_word",
        red: false,
    },
    SampleProject {
        name: "python-unittest",
        needs: &["python3 --version"],
        prepare: &[],
        files: &[
            (
                "slug.py",
                "def slug(title):\n    return \"-\".join(title.lower().split())\n",
            ),
            ("tests/__init__.py", ""),
            (
                "tests/test_slug.py",
                "import unittest\n\nfrom slug import slug\n\n\nclass Slugs(unittest.TestCase):\n    def test_words_are_joined(self):\n        self.assertEqual(slug(\"A  Fine Day\"), \"a-fine-day\")\n\n\nif __name__ == \"__main__\":\n    unittest.main()\n",
            ),
        ],
        source: "slug.py",
        right: "    return \"-\".join(title.lower().split())",
        wrong: "    return \"-\".join(title.lower().split(\" \"))",
        test: "test_words_are_joined",
        red: false,
    },
    SampleProject {
        name: "python-pytest",
        needs: &["python3 -m pytest --version"],
        prepare: &[],
        files: &[
            (".gitignore", "__pycache__/\n.pytest_cache/\n"),
            (
                "pyproject.toml",
                "[project]\nname = \"basket\"\nversion = \"0.1.0\"\n\n[project.optional-dependencies]\ndev = [\"pytest\"]\n\n[tool.pytest.ini_options]\npythonpath = [\"src\"]\ntestpaths = [\"tests\"]\n",
            ),
            (
                "src/basket/__init__.py",
                "def total(items):\n    return sum(price * count for price, count in items)\n",
            ),
            (
                "tests/test_basket.py",
                "from basket import total\n\n\ndef test_price_times_count():\n    assert total([(3, 2), (5, 1)]) == 11\n\n\ndef test_nothing_costs_nothing():\n    assert total([]) == 0\n",
            ),
        ],
        source: "src/basket/__init__.py",
        right: "    return sum(price * count for price, count in items)",
        wrong: "    return sum(price for price, _ in items)",
        test: "test_price_times_count",
        red: false,
    },
    SampleProject {
        name: "javascript",
        needs: &["node --version", "npm --version"],
        prepare: &[],
        files: &[
            (
                "package.json",
                "{\n  \"name\": \"dates\",\n  \"version\": \"1.0.0\",\n  \"type\": \"module\",\n  \"scripts\": {\n    \"test\": \"node --test\"\n  }\n}\n",
            ),
            (
                "index.js",
                "export function isLeap(year) {\n  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);\n}\n",
            ),
            (
                "test/leap.test.js",
                "import assert from \"node:assert\";\nimport test from \"node:test\";\nimport { isLeap } from \"../index.js\";\n\ntest(\"centuries are no leap years\", () => {\n  assert.equal(isLeap(1900), false);\n  assert.equal(isLeap(2000), true);\n});\n",
            ),
        ],
        source: "index.js",
        right: "  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);",
        wrong: "  return year % 4 === 0;",
        test: "centuries are no leap years",
        red: false,
    },
    SampleProject {
        name: "typescript",
        needs: &["node --version", "npm --version"],
        prepare: &["npm install --silent --no-audit --no-fund"],
        files: &[
            (".gitignore", "node_modules/\ndist/\n"),
            (
                "package.json",
                "{\n  \"name\": \"stack\",\n  \"version\": \"1.0.0\",\n  \"private\": true,\n  \"scripts\": {\n    \"typecheck\": \"tsc --noEmit\",\n    \"test\": \"tsc && node --test dist/\"\n  },\n  \"devDependencies\": {\n    \"@types/node\": \"^20.0.0\",\n    \"typescript\": \"~5.6.0\"\n  }\n}\n",
            ),
            (
                "tsconfig.json",
                "{\n  \"compilerOptions\": {\n    \"target\": \"es2022\",\n    \"module\": \"commonjs\",\n    \"strict\": true,\n    \"esModuleInterop\": true,\n    \"outDir\": \"dist\",\n    \"rootDir\": \"src\",\n    \"types\": [\"node\"]\n  },\n  \"include\": [\"src\"]\n}\n",
            ),
            (
                "src/stack.ts",
                "export class Stack<T> {\n  private items: T[] = [];\n\n  push(item: T): void {\n    this.items.push(item);\n  }\n\n  pop(): T | undefined {\n    return this.items.pop();\n  }\n}\n",
            ),
            (
                "src/stack.test.ts",
                "import assert from \"node:assert\";\nimport test from \"node:test\";\nimport { Stack } from \"./stack\";\n\ntest(\"last in, first out\", () => {\n  const stack = new Stack<number>();\n  stack.push(1);\n  stack.push(2);\n  assert.equal(stack.pop(), 2);\n});\n",
            ),
        ],
        source: "src/stack.ts",
        right: "    return this.items.pop();",
        wrong: "    return this.items.shift();",
        test: "last in, first out",
        red: false,
    },
    SampleProject {
        name: "go-module",
        needs: &["go version"],
        prepare: &[],
        files: &[
            ("go.mod", "module example.org/gcd\n\ngo 1.19\n"),
            (
                "gcd.go",
                "// Package gcd has one function.\npackage gcd\n\n// Of is the greatest common divisor.\nfunc Of(a, b int) int {\n\tfor b != 0 {\n\t\ta, b = b, a%b\n\t}\n\treturn a\n}\n",
            ),
            (
                "gcd_test.go",
                "package gcd\n\nimport \"testing\"\n\nfunc TestOf(t *testing.T) {\n\tif got := Of(12, 18); got != 6 {\n\t\tt.Errorf(\"Of(12, 18) = %d\", got)\n\t}\n}\n",
            ),
        ],
        source: "gcd.go",
        right: "\treturn a",
        wrong: "\treturn b",
        test: "TestOf",
        red: false,
    },
    SampleProject {
        name: "go-command",
        needs: &["go version"],
        prepare: &[],
        files: &[
            ("go.mod", "module example.org/greet\n\ngo 1.19\n"),
            (
                "cmd/greet/main.go",
                "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.org/greet/internal/words\"\n)\n\nfunc main() {\n\tfmt.Println(words.Greeting(\"you\"))\n}\n",
            ),
            (
                "internal/words/words.go",
                "// Package words knows what to say.\npackage words\n\n// Greeting greets.\nfunc Greeting(name string) string {\n\treturn \"Hello, \" + name + \"!\"\n}\n",
            ),
            (
                "internal/words/words_test.go",
                "package words\n\nimport \"testing\"\n\nfunc TestGreeting(t *testing.T) {\n\tif got := Greeting(\"Ann\"); got != \"Hello, Ann!\" {\n\t\tt.Errorf(\"got %q\", got)\n\t}\n}\n",
            ),
        ],
        source: "internal/words/words.go",
        right: "\treturn \"Hello, \" + name + \"!\"",
        wrong: "\treturn \"Hello, \" + name",
        test: "TestGreeting",
        red: false,
    },
    SampleProject {
        name: "polyglot-monorepo",
        needs: &[
            "cargo --version",
            "python3 --version",
            "node --version",
            "npm --version",
        ],
        prepare: &[],
        files: &[
            (".gitignore", "target/\n__pycache__/\n"),
            (
                "services/api/Cargo.toml",
                "[package]\nname = \"api\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            (
                "services/api/Cargo.lock",
                "version = 3\n\n[[package]]\nname = \"api\"\nversion = \"0.1.0\"\n",
            ),
            (
                "services/api/src/lib.rs",
                "pub fn route(path: &str) -> u16 {\n    if path == \"/health\" { 200 } else { 404 }\n}\n\n#[test]\nfn health_is_there() {\n    assert_eq!(route(\"/health\"), 200);\n}\n",
            ),
            (
                "tools/report.py",
                "def line(name, value):\n    return f\"{name}: {value}\"\n",
            ),
            (
                "tools/test_report.py",
                "import unittest\n\nfrom report import line\n\n\nclass Lines(unittest.TestCase):\n    def test_name_and_value(self):\n        self.assertEqual(line(\"a\", 1), \"a: 1\")\n",
            ),
            (
                "web/package.json",
                "{\n  \"name\": \"web\",\n  \"version\": \"1.0.0\",\n  \"private\": true,\n  \"scripts\": {\n    \"test\": \"node --test\"\n  }\n}\n",
            ),
            (
                "web/title.js",
                "exports.title = (page) => `${page} - Shop`;\n",
            ),
            (
                "web/title.test.js",
                "const assert = require(\"node:assert\");\nconst test = require(\"node:test\");\nconst { title } = require(\"./title.js\");\n\ntest(\"the shop is in the title\", () => {\n  assert.equal(title(\"Cart\"), \"Cart - Shop\");\n});\n",
            ),
        ],
        source: "tools/report.py",
        right: "    return f\"{name}: {value}\"",
        wrong: "    return f\"{name} = {value}\"",
        test: "test_name_and_value",
        red: false,
    },
    SampleProject {
        name: "red-before",
        needs: &["python3 --version"],
        prepare: &[],
        files: &[
            (
                "money.py",
                "def cents(euros):\n    return int(euros * 100)\n",
            ),
            (
                "test_money.py",
                "import unittest\n\nfrom money import cents\n\n\nclass Cents(unittest.TestCase):\n    def test_is_exact(self):\n        self.assertEqual(cents(0.29), 29)\n",
            ),
        ],
        source: "money.py",
        right: "    return int(euros * 100)",
        // The test fails as before: the edit neither breaks nor mends anything.
        wrong: "    return int(100 * euros)",
        test: "test_is_exact",
        red: true,
    },
];
