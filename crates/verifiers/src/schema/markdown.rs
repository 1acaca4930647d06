//! Turns Markdown into a document that a schema can describe. Every heading opens a section, which
//! lasts until the next heading of its rank or above, so a section contains what its subsections
//! contain.
//!
//! ```text
//! { "done": { "text": "...", "items": ["..."], "links": ["https://..."], "rows": [{"name": "..."}] } }
//! ```
//!
//! Names of sections and columns are in lower case, without a colon at the end. Comments and front
//! matter are skipped. Text before the first heading is the section "".

use std::collections::BTreeMap;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};
use serde_json::{Map, Value, json};

/// The sections of a document, with line numbers.
#[derive(Debug)]
pub(super) struct MarkdownOutline {
    sections: BTreeMap<String, MarkdownSection>,
}

#[derive(Debug, Default)]
struct MarkdownSection {
    line: u32,
    /// Blocks of text, each on one line.
    text: Vec<String>,
    /// Items of outermost lists, each with its line.
    items: Vec<(String, u32)>,
    /// Each link once, with its line; within a block first those with link syntax, then bare URLs.
    links: Vec<(String, u32)>,
    /// Rows of tables, each with its line.
    rows: Vec<(Map<String, Value>, u32)>,
}

fn markdown_parser_options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
}

/// The ```` ```json ```` blocks of a text, each with its first line.
pub(super) fn json_code_blocks(text: &str) -> Vec<(String, u32)> {
    let lines = LineStarts::line_starts_of_text(text);
    let mut blocks = Vec::new();
    let mut open: Option<(String, u32)> = None;
    for (event, range) in Parser::new_ext(text, markdown_parser_options()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let json = info.split_whitespace().next();
                if json.is_some_and(|word| word.eq_ignore_ascii_case("json")) {
                    open = Some((String::new(), lines.line_number_at_offset(range.start) + 1));
                }
            }
            Event::Text(text) => {
                if let Some((block, _)) = &mut open {
                    block.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => blocks.extend(open.take()),
            _ => {}
        }
    }
    blocks
}

impl MarkdownOutline {
    pub(super) fn parse_diff_outline(text: &str) -> Self {
        let mut reader = MarkdownReader {
            lines: LineStarts::line_starts_of_text(text),
            sections: BTreeMap::new(),
            open: Vec::new(),
            block: String::new(),
            bare: String::new(),
            block_at: 0,
            in_link: 0,
            in_code: false,
            skipped: false,
            heading: None,
            lists: 0,
            item: None,
            table: None,
        };
        for (event, range) in Parser::new_ext(text, markdown_parser_options()).into_offset_iter() {
            reader.read_markdown_event(event, range);
        }
        reader.end_parsed_markdown_block();
        Self {
            sections: reader.sections,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let texts = |many: &[(String, u32)]| -> Vec<Value> {
            many.iter().map(|(one, _)| json!(one)).collect()
        };
        let section = |section: &MarkdownSection| {
            let rows = section.rows.iter();
            let rows: Vec<Value> = rows.map(|(row, _)| Value::Object(row.clone())).collect();
            json!({
                "text": section.text.join("\n"),
                "items": texts(&section.items),
                "links": texts(&section.links),
                "rows": rows,
            })
        };
        let all = self.sections.iter();
        Value::Object(all.map(|(name, of)| (name.clone(), section(of))).collect())
    }

    /// Returns the line of what the pointer names, or of the section that it is in.
    pub(super) fn markdown_line_of_json_pointer(&self, pointer: &str) -> Option<u32> {
        let mut tokens = pointer.split('/').skip(1);
        let name = tokens.next()?.replace("~1", "/").replace("~0", "~");
        let section = self.sections.get(&name)?;
        let part = tokens.next();
        let nth = tokens.next().and_then(|nth| nth.parse::<usize>().ok());
        let line = nth.and_then(|nth| match part {
            Some("items") => section.items.get(nth).map(|(_, line)| *line),
            Some("links") => section.links.get(nth).map(|(_, line)| *line),
            Some("rows") => section.rows.get(nth).map(|(_, line)| *line),
            _ => None,
        });
        Some(line.unwrap_or(section.line))
    }
}

struct MarkdownReader {
    lines: LineStarts,
    sections: BTreeMap<String, MarkdownSection>,
    /// Rank and name of the open headings, outermost first.
    open: Vec<(u8, String)>,
    /// The text of the current block, and the same without links and code.
    block: String,
    bare: String,
    block_at: usize,
    in_link: usize,
    in_code: bool,
    /// Whether front matter is being read.
    skipped: bool,
    heading: Option<(u8, u32)>,
    lists: usize,
    /// The current outermost item: its text so far and its line.
    item: Option<(String, u32)>,
    table: Option<MarkdownTableReader>,
}

/// The table being read.
#[derive(Default)]
struct MarkdownTableReader {
    columns: Vec<String>,
    cells: Vec<String>,
    row_at: u32,
}

impl MarkdownReader {
    fn read_markdown_event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.begin_markdown_element(tag, &range),
            Event::End(tag) => self.end_markdown_tag(tag),
            Event::Text(text) if !self.skipped => {
                self.append_block_text(&text, range.start);
                // `bare` is searched for URLs: those in links are collected already, and those in
                // code are examples.
                let shown = self.in_link == 0 && !self.in_code;
                self.bare.push_str(if shown { &text } else { " " });
            }
            Event::Code(text) => {
                self.append_block_text(&text, range.start);
                self.bare.push(' ');
            }
            Event::SoftBreak | Event::HardBreak => {
                self.block.push(' ');
                self.bare.push(' ');
            }
            // HTML (comments among it) and decoration carry no text.
            _ => {}
        }
    }

    fn append_block_text(&mut self, text: &str, at: usize) {
        if self.block.is_empty() {
            self.block_at = at;
        }
        self.block.push_str(text);
    }

    fn begin_markdown_element(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        let line = self.lines.line_number_at_offset(range.start);
        match tag {
            Tag::Heading { level, .. } => {
                self.end_parsed_markdown_block();
                self.heading = Some((level as u8, line));
            }
            Tag::List(_) => {
                self.end_parsed_markdown_block();
                self.lists += 1;
            }
            Tag::Item => {
                self.end_parsed_markdown_block();
                // Nested items belong to the outermost one, so that its text is complete.
                if self.lists == 1 {
                    self.item = Some((String::new(), line));
                }
            }
            Tag::Link {
                link_type,
                dest_url,
                ..
            } => {
                self.in_link += 1;
                // An `<a@b.example>` is an address, and no link that a reader could follow.
                if link_type != LinkType::Email {
                    self.collect_markdown_link(&dest_url, line);
                }
            }
            Tag::Table(_) => {
                self.end_parsed_markdown_block();
                self.table = Some(MarkdownTableReader::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.cells.clear();
                    table.row_at = line;
                }
            }
            Tag::CodeBlock(_) => {
                self.end_parsed_markdown_block();
                self.in_code = true;
            }
            Tag::MetadataBlock(_) => self.skipped = true,
            Tag::Paragraph | Tag::BlockQuote(_) => self.end_parsed_markdown_block(),
            _ => {}
        }
    }

    fn end_markdown_tag(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => self.end_parsed_markdown_heading(),
            TagEnd::List(_) => {
                self.end_parsed_markdown_block();
                self.lists = self.lists.saturating_sub(1);
            }
            TagEnd::Item => {
                self.end_parsed_markdown_block();
                if self.lists == 1
                    && let Some((text, line)) = self.item.take()
                {
                    self.for_each_open_section(|section| section.items.push((text.clone(), line)));
                }
            }
            TagEnd::Link => self.in_link = self.in_link.saturating_sub(1),
            // The cell is taken before the block ends, which empties it. Its text counts for the
            // section too.
            TagEnd::TableCell => {
                let cell = collapse_whitespace(&self.block);
                self.end_parsed_markdown_block();
                if let Some(table) = &mut self.table {
                    table.cells.push(cell);
                }
            }
            TagEnd::TableHead => {
                if let Some(table) = &mut self.table {
                    table.columns = table
                        .cells
                        .iter()
                        .map(|cell| normalized_heading_or_column(cell))
                        .collect();
                }
            }
            TagEnd::TableRow => self.collect_markdown_table_row(),
            TagEnd::Table => self.table = None,
            TagEnd::CodeBlock => {
                self.end_parsed_markdown_block();
                self.in_code = false;
            }
            TagEnd::MetadataBlock(_) => self.skipped = false,
            TagEnd::Paragraph | TagEnd::BlockQuote(_) => self.end_parsed_markdown_block(),
            _ => {}
        }
    }

    fn end_parsed_markdown_heading(&mut self) {
        let Some((rank, line)) = self.heading.take() else {
            return;
        };
        let name = normalized_heading_or_column(&self.block);
        self.bare.clear();
        self.block.clear();
        // A heading closes all sections of its own rank and below.
        self.open.retain(|(above, _)| *above < rank);
        // Headings of the same name share one section, whose line is that of the first.
        let known = self.sections.entry(name.clone()).or_default();
        if known.line == 0 {
            known.line = line;
        }
        self.open.push((rank, name));
    }

    fn collect_markdown_table_row(&mut self) {
        let Some(table) = &mut self.table else { return };
        let cells = std::mem::take(&mut table.cells);
        let row: Map<String, Value> = table
            .columns
            .iter()
            .cloned()
            .zip(cells.into_iter().map(Value::String))
            .collect();
        let line = table.row_at;
        self.for_each_open_section(|section| section.rows.push((row.clone(), line)));
    }

    /// Ends the current block, whose text belongs to all open sections.
    fn end_parsed_markdown_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        let bare = std::mem::take(&mut self.bare);
        if self.heading.is_some() {
            // The text of a heading is its name and is kept for that; it is no text of a section.
            self.block = block;
            return;
        }
        let text = collapse_whitespace(&block);
        if text.is_empty() {
            return;
        }
        let line = self.lines.line_number_at_offset(self.block_at);
        if let Some((item, _)) = &mut self.item {
            if !item.is_empty() {
                item.push(' ');
            }
            item.push_str(&text);
        }
        for word in bare.split_whitespace() {
            if let Some(url) = find_bare_url(word) {
                self.collect_markdown_link(url, line);
            }
        }
        self.for_each_open_section(|section| section.text.push(text.clone()));
    }

    fn collect_markdown_link(&mut self, url: &str, line: u32) {
        self.for_each_open_section(|section| {
            if section.links.iter().all(|(known, _)| known != url) {
                section.links.push((url.to_owned(), line));
            }
        });
    }

    /// Calls `what` for every open section, or for the section "" if there is none.
    fn for_each_open_section(&mut self, mut what: impl FnMut(&mut MarkdownSection)) {
        if self.open.is_empty() {
            let before = self.sections.entry(String::new()).or_default();
            before.line = before.line.max(1);
            what(before);
        }
        let mut told: Vec<&str> = Vec::new();
        for (_, name) in &self.open {
            // A subsection may have the name of the section that it is in.
            if !told.contains(&name.as_str())
                && let Some(section) = self.sections.get_mut(name)
            {
                what(section);
                told.push(name);
            }
        }
    }
}

/// Returns the bare URL in a word.
fn find_bare_url(word: &str) -> Option<&str> {
    let start = word.find("https://").or_else(|| word.find("http://"))?;
    let url = word.get(start..)?;
    let end = url.find(['<', '>', '"', '|']).unwrap_or(url.len());
    let url = url.get(..end)?;
    // A closing parenthesis belongs to the URL only if an opening one does.
    let mut url = url.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_']);
    if !url.contains('(') {
        url = url.trim_end_matches([')', '.', ',']);
    }
    let (_, rest) = url.split_once("://")?;
    (!rest.is_empty()).then_some(url)
}

/// Returns the normalized name of a section or a column.
fn normalized_heading_or_column(text: &str) -> String {
    let text = collapse_whitespace(text);
    text.trim_end_matches([':', ' ']).to_lowercase()
}

fn collapse_whitespace(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// The offset at which each line begins.
struct LineStarts {
    starts: Vec<usize>,
}

impl LineStarts {
    fn line_starts_of_text(text: &str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            starts: std::iter::once(0).chain(breaks).collect(),
        }
    }

    fn line_number_at_offset(&self, at: usize) -> u32 {
        let line = self.starts.partition_point(|start| *start <= at);
        u32::try_from(line).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "---\nauthor: x\n---\nIntro, see https://a.example/x_y.\n\n# Weekly report 47\n\n## Done:\n\n- shipped **it**\n  - nested\n- [x] `wrote` more\n\n<!-- - hidden -->\n\n## Metrics\n\n| Name | Value |\n|---|---|\n| bugs | 3 |\n\n### Done\n\n1. third ([x](https://b.example/))\n\n## Links\n\nhttps://b.example/ <https://c.example/d> and (https://c.example/d).\n\n```sh\ncurl https://code.example/\n```\n";

    #[test]
    fn sections_are_read() {
        let outline = MarkdownOutline::parse_diff_outline(REPORT);
        let weekly = json!({
            "text": "shipped it\nnested\nwrote more\nName\nValue\nbugs\n3\nthird (x)\nhttps://b.example/ https://c.example/d and (https://c.example/d).\ncurl https://code.example/",
            "items": ["shipped it nested", "wrote more", "third (x)"],
            "links": ["https://b.example/", "https://c.example/d"],
            "rows": [{"name": "bugs", "value": "3"}],
        });
        assert_eq!(
            outline.to_json(),
            json!({
                "": {
                    "text": "Intro, see https://a.example/x_y.",
                    "items": [],
                    "links": ["https://a.example/x_y"],
                    "rows": [],
                },
                "weekly report 47": weekly,
                "done": {
                    "text": "shipped it\nnested\nwrote more\nthird (x)",
                    "items": ["shipped it nested", "wrote more", "third (x)"],
                    "links": ["https://b.example/"],
                    "rows": [],
                },
                "metrics": {
                    "text": "Name\nValue\nbugs\n3\nthird (x)",
                    "items": ["third (x)"],
                    "links": ["https://b.example/"],
                    "rows": [{"name": "bugs", "value": "3"}],
                },
                "links": {
                    "text": "https://b.example/ https://c.example/d and (https://c.example/d).\ncurl https://code.example/",
                    "items": [],
                    "links": ["https://c.example/d", "https://b.example/"],
                    "rows": [],
                },
            })
        );
        let line = |pointer: &str, line| {
            assert_eq!(
                outline.markdown_line_of_json_pointer(pointer),
                line,
                "{pointer}"
            )
        };
        line("", None);
        line("/done", Some(8));
        line("/done/items", Some(8));
        line("/done/items/1", Some(12));
        line("/metrics/rows/0/value", Some(20));
        line("/links/links/1", Some(28));
        line("/none", None);
    }

    #[test]
    fn bare_links_end_where_the_sentence_goes_on() {
        let check = |word: &str, url: Option<&str>| assert_eq!(find_bare_url(word), url, "{word}");
        check("https://a.example/b.", Some("https://a.example/b"));
        check("(http://a.example),", Some("http://a.example"));
        check("https://a.example/b_(c)", Some("https://a.example/b_(c)"));
        check("**https://a.example**", Some("https://a.example"));
        check("https://", None);
        check("ftp://a.example", None);
    }

    #[test]
    fn json_blocks_are_found_with_their_lines() {
        let text =
            "Here:\n\n```json\n{\n \"a\": 1}\n```\n\n> ```JSON x\n> [2]\n> ```\n\n```\n{}\n```\n";
        assert_eq!(
            json_code_blocks(text),
            [("{\n \"a\": 1}\n".to_owned(), 4), ("[2]\n".to_owned(), 9)]
        );
    }
}
