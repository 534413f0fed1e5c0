//! Which format is this log in? Named, given, or found by trying the known ones on its first lines.

use crate::json;
use crate::line::Line;
use crate::pattern::{COMBINED, COMMON, HAPROXY, NoFormat, Pattern, Stamp};

/// Formats with a name, the more telling first.
const KNOWN: [(&str, &str); 4] =
    [("json", ""), ("haproxy", HAPROXY), ("combined", COMBINED), ("common", COMMON)];

/// How lines are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Format {
    name: Box<str>,
    how: How,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum How {
    Json,
    Text(Pattern),
}

impl Format {
    /// The format of that name (`json`, `combined`, `common`, `haproxy`), or the format that `text`
    /// is, in the words of nginx or of HAProxy.
    pub fn read(text: &str) -> Result<Format, NoFormat> {
        let known = KNOWN.iter().find(|(name, _)| *name == text);
        let how = match known {
            Some(("json", _)) => How::Json,
            Some((_, format)) => How::Text(Pattern::read(format)?),
            None => How::Text(Pattern::read(text)?),
        };
        Ok(Format { name: known.map_or("as given", |(name, _)| name).into(), how })
    }

    /// The known format that most of these lines fit; none when no line fits any.
    pub(crate) fn detect<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone) -> Option<Format> {
        let known = KNOWN.iter().filter_map(|(name, _)| Format::read(name).ok());
        let fits = |format: &Format| {
            let mut room = Vec::new();
            lines.clone().filter(|line| format.line(line, &mut room, |_| {})).count()
        };
        // Of equals the first, which `max_by_key` would not give.
        let mut best: Option<(usize, Format)> = None;
        for format in known {
            let count = fits(&format);
            if count > best.as_ref().map_or(0, |(count, _)| *count) {
                best = Some((count, format));
            }
        }
        best.map(|(_, format)| format)
    }

    /// Hands what the line says to `take`, unless it is of another format.
    pub(crate) fn line(
        &self,
        text: &[u8],
        room: &mut Vec<u8>,
        take: impl FnOnce(&Line<'_>),
    ) -> bool {
        match &self.how {
            How::Json => json::line(text, room, take),
            How::Text(pattern) => pattern.line(text).map(|line| take(&line)).is_some(),
        }
    }

    /// Whether a line's moment is when its request began.
    pub(crate) fn stamp(&self) -> Stamp {
        match &self.how {
            How::Json => Stamp::Began,
            How::Text(pattern) => pattern.stamp,
        }
    }

    /// Its name, or "as given".
    pub fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn known_formats_are_found_and_others_are_not() {
        let found = |text: &str| {
            let lines = text.lines().map(str::as_bytes);
            Format::detect(lines).map(|format| format.name().to_owned())
        };
        let combined = "1.2.3.4 - - [21/Nov/2026:17:12:33 +0000] \"GET / HTTP/1.1\" 200 5";
        assert_eq!(found(combined).unwrap(), "common");
        assert_eq!(found(&format!("torn\n{combined} \"-\" \"curl\"")).unwrap(), "combined");
        assert_eq!(found("{\"time\":\"2026-11-21T17:12:33.123Z\"}").unwrap(), "json");
        assert_eq!(found("what is\nthis").as_deref(), None);
        assert_eq!(Format::read("$status").unwrap().name(), "as given");
    }
}
