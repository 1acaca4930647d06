//! Where in a JSON text a value stands: `hooks.PreToolUse[0].hooks[1].timeout` → its line.

/// One step of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    At(usize),
}

/// `hooks.Stop[0].matcher` in steps.
pub(super) fn steps(place: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for part in place.split('.') {
        let mut pieces = part.split('[');
        if let Some(key) = pieces.next().filter(|key| !key.is_empty()) {
            steps.push(Step::Key(key.to_owned()));
        }
        for piece in pieces {
            if let Ok(at) = piece.trim_end_matches(']').parse() {
                steps.push(Step::At(at));
            }
        }
    }
    steps
}

/// The line, from 1, of the value at these steps, or of the nearest one around it.
pub(super) fn line_of(text: &str, steps: &[Step]) -> usize {
    let mut scan = Scan {
        bytes: text.as_bytes(),
        at: 0,
    };
    scan.blanks();
    let mut found = scan.at;
    for step in steps {
        let Some(at) = scan.enter(step) else { break };
        found = at;
    }
    let before = text.as_bytes().get(..found).unwrap_or_default();
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// Reads along a text that was parsed before: what does not fit ends the search.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF) = self.peek() {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.blanks();
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    /// Goes to the value of this step; gives where its key or it begins.
    fn enter(&mut self, step: &Step) -> Option<usize> {
        match step {
            Step::Key(wanted) => {
                self.take(b'{')?;
                loop {
                    self.blanks();
                    let begin = self.at;
                    let key = self.text()?;
                    self.take(b':')?;
                    self.blanks();
                    if key == wanted.as_bytes() {
                        return Some(begin);
                    }
                    self.pass()?;
                    self.take(b',')?;
                }
            }
            Step::At(wanted) => {
                self.take(b'[')?;
                for _ in 0..*wanted {
                    self.pass()?;
                    self.take(b',')?;
                }
                self.blanks();
                Some(self.at)
            }
        }
    }

    /// A text, without its quotes and as it is written.
    fn text(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let begin = self.at;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.bytes.get(begin..self.at - 1)
    }

    /// Passes over a value.
    fn pass(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            self.blanks();
            match self.peek()? {
                b'"' => {
                    self.text()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    while let Some(byte) = self.peek()
                        && !b",]} \t\r\n".contains(&byte)
                    {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_its_line() {
        let text = "\u{feff}{\n  \"a\": [1, \"]\\\"\", {}],\n  \"hooks\": {\n    \"Stop\": [\n      {},\n      {\n        \"hooks\": [\n          { \"x\": 1 },\n          { \"type\": \"command\",\n            \"timeout\": \"30\" }\n        ]\n      }\n    ]\n  }\n}\n";
        for (place, line) in [
            ("a", 2),
            ("hooks", 3),
            ("hooks.Stop[0]", 5),
            ("hooks.Stop[1]", 6),
            ("hooks.Stop[1].hooks[1].timeout", 10),
            ("hooks.Stop[1].hooks[1].absent", 9),
            ("hooks.Absent[3]", 3),
        ] {
            assert_eq!(line_of(text, &steps(place)), line, "{place}");
        }
        assert_eq!(line_of("not json", &steps("a.b")), 1);
    }
}
