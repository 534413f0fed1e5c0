//! Fenced blocks of a Markdown document, and what their first line says shall be done with them.
//!
//! ```` ```console retry=10s ```` · ```` ```toml file=subak.toml ```` · ```` ```text not-run="a picture" ````

/// One fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// Of its fence, from 1.
    pub(crate) line: usize,
    pub(crate) language: String,
    /// What follows the language: `name=value` or `name`, whose value is empty.
    options: Vec<(String, String)>,
    /// Its lines, without the fences.
    pub(crate) lines: Vec<String>,
}

impl Block {
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(option, _)| option == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// A configuration that no command of the document reads.
    pub(crate) fn is_checked_alone(&self) -> bool {
        self.language == "toml" && self.option("file").is_none() && self.option("not-run").is_none()
    }

    /// Why it cannot be left like this.
    pub(crate) fn fault(&self) -> Option<String> {
        if let Some(reason) = self.option("not-run") {
            return reason.is_empty().then(|| "not-run says no reason".to_owned());
        }
        let known: &[&str] = match self.language.as_str() {
            "console" => &["retry", "check"],
            "toml" => &["file", "in", "each", "wrong", "scenario"],
            _ => {
                return Some(
                    "it says neither `console` nor `toml`: run it, or say not-run=\"why\"".into(),
                );
            }
        };
        if let Some((name, _)) = self.options.iter().find(|(name, _)| !known.contains(&&**name)) {
            return Some(format!("the option {name} is not known: there are {known:?}"));
        }
        let first = self.lines.first().map_or("", |line| line);
        (self.language == "console" && !first.starts_with("$ "))
            .then(|| "begins with no command: lines of commands begin with \"$ \"".to_owned())
    }
}

/// The blocks that stand in comments.
pub(crate) fn hidden(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let is_hidden = |block: &Block| {
        let before = lines[..block.line - 1].iter().rev();
        let comment = before
            .map(|line| line.trim())
            .find(|line| line.starts_with("<!--") || line.ends_with("-->"));
        comment.is_some_and(|line| !line.ends_with("-->"))
    };
    of(text).into_iter().filter(is_hidden).collect()
}

/// All blocks of a document, those in its comments included.
pub(crate) fn of(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(Block, &str)> = None;
    for (index, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        match &mut open {
            Some((_, fence)) if bare.trim_end() == *fence => {
                blocks.extend(open.take().map(|(block, _)| block));
            }
            Some((block, _)) => block.lines.push(line.to_owned()),
            None if bare.starts_with("```") => {
                let ticks = bare.len() - bare.trim_start_matches('`').len();
                let (fence, info) = bare.split_at(ticks);
                let mut words = words(info).into_iter();
                let language = words.next().map_or(String::new(), |(language, _)| language);
                let options = words.collect();
                let line = index + 1;
                open = Some((Block { line, language, options, lines: Vec::new() }, fence));
            }
            None => {}
        }
    }
    // A block that is not closed goes to the end of the document.
    blocks.extend(open.map(|(block, _)| block));
    blocks
}

/// `a b=c d="e f"` as names and values.
fn words(info: &str) -> Vec<(String, String)> {
    let mut words = Vec::new();
    let mut rest = info.trim();
    while !rest.is_empty() {
        let end = rest.find([' ', '=']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let (value, after) = match after.strip_prefix('=') {
            None => ("", after),
            Some(after) => match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => after.split_at(after.find(' ').unwrap_or(after.len())),
            },
        };
        words.push((name.to_owned(), value.to_owned()));
        rest = after.trim_start();
    }
    words
}

/// Lines where a block of code begins that is made by indentation alone.
pub(crate) fn indented(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        let bare = line.trim();
        match fence {
            Some(end) if bare == end => fence = None,
            Some(_) => {}
            None if bare.starts_with("```") => {
                fence = Some(&bare[..bare.len() - bare.trim_start_matches('`').len()]);
            }
            None if line.starts_with("    ") && before.is_empty() => found.push(index + 1),
            None => {}
        }
        before = bare;
    }
    found
}
