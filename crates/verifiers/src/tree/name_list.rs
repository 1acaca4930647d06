//! A set of names in one buffer. There may be hundreds of thousands of names, and building a set of
//! strings takes longer than reading the tree.

/// Names sorted by their bytes, each once. None is empty, and none holds a NUL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedNameSet {
    /// The names, separated by NUL.
    text: String,
    starts: Vec<usize>,
}

impl PackedNameSet {
    /// Parses NUL-separated names, as [`PackedNameSet::to_nul_separated_text`] returns them.
    pub fn from_nul_separated(text: String) -> Self {
        let mut starts = Vec::new();
        let (mut at, mut before) = (0, "");
        for name in text.split('\0') {
            // The usual text is sorted already and is taken over without a copy. This also catches
            // empty names and duplicates, which sorting removes.
            if name <= before {
                return text.split('\0').collect();
            }
            starts.push(at);
            (at, before) = (at + name.len() + 1, name);
        }
        Self { text, starts }
    }

    /// Returns all names, separated by NUL.
    pub fn to_nul_separated_text(&self) -> &str {
        &self.text
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Iterates over the names in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.starts
            .iter()
            .map(|start| self.nul_terminated_name_at_offset(*start))
    }

    /// Returns whether the set contains this name.
    pub fn contains_name(&self, name: &str) -> bool {
        // The names are sorted, so a binary search over their starts finds one.
        self.first_name_sorted_at_or_after(name) == Some(name)
    }

    /// Returns the first name that is not less than `text`.
    pub fn first_name_sorted_at_or_after(&self, text: &str) -> Option<&str> {
        let is_before = |start: &usize| self.nul_terminated_name_at_offset(*start) < text;
        let first = self.starts.get(self.starts.partition_point(is_before));
        first.map(|start| self.nul_terminated_name_at_offset(*start))
    }

    /// Returns the union of these names and `more`.
    pub fn name_set_union<'n>(&'n self, more: impl IntoIterator<Item = &'n str>) -> Self {
        self.iter().chain(more).collect()
    }

    fn nul_terminated_name_at_offset(&self, start: usize) -> &str {
        let rest = self.text.get(start..).unwrap_or_default();
        // The last name has no NUL after it.
        let end = memchr::memchr(0, rest.as_bytes());
        end.and_then(|end| rest.get(..end)).unwrap_or(rest)
    }
}

impl<'n> FromIterator<&'n str> for PackedNameSet {
    fn from_iter<I: IntoIterator<Item = &'n str>>(names: I) -> Self {
        let names = names.into_iter();
        let mut sorted: Vec<&str> = names.filter(|name| is_nonempty_without_nul(name)).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut list = Self::default();
        for name in sorted {
            list.append_name_that_sorts_last(name);
        }
        list
    }
}

impl PackedNameSet {
    /// Appends a name that sorts after all others.
    fn append_name_that_sorts_last(&mut self, name: &str) {
        if !self.starts.is_empty() {
            self.text.push('\0');
        }
        self.starts.push(self.text.len());
        self.text.push_str(name);
    }
}

fn is_nonempty_without_nul(text: &str) -> bool {
    !text.is_empty() && !text.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found_whatever_order_they_come_in() {
        let check = |text: &str, expected: &[&str]| {
            let list = PackedNameSet::from_nul_separated(text.to_owned());
            assert_eq!(list.iter().collect::<Vec<_>>(), expected, "{text:?}");
            assert_eq!(list, expected.iter().copied().collect());
            assert_eq!(
                list,
                PackedNameSet::from_nul_separated(list.to_nul_separated_text().to_owned())
            );
            assert_eq!(
                (list.len(), list.is_empty()),
                (expected.len(), expected.is_empty())
            );
            for name in ["", "a", "a-b", "a/b", "b", "ba", "z"] {
                assert_eq!(
                    list.contains_name(name),
                    expected.contains(&name),
                    "{name:?}"
                );
                let from = expected.iter().copied().find(|other| *other >= name);
                assert_eq!(list.first_name_sorted_at_or_after(name), from, "{name:?}");
            }
        };
        check("", &[]);
        check("\0", &[]);
        check("a", &["a"]);
        check("a\0a-b\0a/b\0b", &["a", "a-b", "a/b", "b"]);
        check("b\0a/b\0a\0a-b", &["a", "a-b", "a/b", "b"]);
        check("\0a\0b", &["a", "b"]);
        check("a\0a\0b\0", &["a", "b"]);
        let list = PackedNameSet::from_nul_separated("b".to_owned());
        assert_eq!(
            list.name_set_union(["c", "a", "b"]).to_nul_separated_text(),
            "a\0b\0c"
        );
    }
}
