//! The fields of a message: one arena of bytes and spans into it, in the order received.
//!
//! Looking up a [`Known`] name that is absent costs one bit test. Values appended by us are told
//! from received ones, so that a `Connection` field can not remove what Subak itself added.

use crate::claims::{self, is_claim};
use crate::error::BadField;
use crate::framing;
use crate::known::Known;
use crate::spelling::{is_alike, is_odd};

/// The fields of one head or trailer section. Order and case are kept; names compare without case.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// `Name: value\r\n` per entry; parsed heads keep their own spacing.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// One bit per [`Known`] that occurs.
    present: u64,
    /// One bit per [`Known`] that occurs more than once, in blocks as received.
    repeated: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name_start: u32,
    pub(crate) value_start: u32,
    pub(crate) value_len: u32,
    pub(crate) name_len: u16,
    pub(crate) known: Known,
    pub(crate) flags: u8,
}

/// The entry stands in the arena as `Name: value\r\n` and may be copied as it is.
pub(crate) const CANONICAL: u8 = 1;
/// The entry was received, not added by us.
pub(crate) const RECEIVED: u8 = 2;
/// About to be removed.
const DOOMED: u8 = 4;

/// One field as [`Fields::iter`] yields it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field<'a> {
    /// The name, classified.
    pub known: Known,
    /// The name as written.
    pub name: &'a [u8],
    /// The value without surrounding whitespace.
    pub value: &'a [u8],
}

impl Fields {
    /// No fields, no memory.
    pub fn new() -> Fields {
        Fields::default()
    }

    /// Removes everything and keeps the buffers.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.present = 0;
        self.repeated = 0;
    }

    /// The number of field lines.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without any field.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of memory the buffers hold.
    pub fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// Gives memory back above these sizes, so that one large head does not stay paid for by an
    /// idle connection.
    pub fn shrink_to(&mut self, bytes: usize, fields: usize) {
        self.bytes.shrink_to(bytes);
        self.entries.shrink_to(fields);
    }

    /// True when a field of this name is there. Constant time.
    #[inline]
    pub fn has(&self, known: Known) -> bool {
        self.present & known.bit() != 0
    }

    /// True when any of the names whose bits are given is there.
    #[inline]
    pub(crate) fn has_any(&self, bits: u64) -> bool {
        self.present & bits != 0
    }

    /// How many field lines have this name.
    pub fn count(&self, known: Known) -> usize {
        if self.has(known) { self.entries.iter().filter(|e| e.known == known).count() } else { 0 }
    }

    /// The value of the first field of this name.
    #[inline]
    pub fn get(&self, known: Known) -> Option<&[u8]> {
        if !self.has(known) {
            return None;
        }
        self.entries.iter().find(|e| e.known == known).map(|e| self.value(e))
    }

    /// The values of all fields of this name, in order.
    pub fn get_all(&self, known: Known) -> impl Iterator<Item = &[u8]> {
        let entries = if self.has(known) { &self.entries[..] } else { &[] };
        entries.iter().filter(move |e| e.known == known).map(|e| self.value(e))
    }

    /// The value of the first field with this name in any case. For names without a [`Known`].
    pub fn get_named(&self, name: &[u8]) -> Option<&[u8]> {
        self.entries.iter().find(|e| self.name(e).eq_ignore_ascii_case(name)).map(|e| self.value(e))
    }

    /// The values of all fields with this name in any case, in order.
    pub fn get_all_named<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.entries
            .iter()
            .filter(move |e| self.name(e).eq_ignore_ascii_case(name))
            .map(|e| self.value(e))
    }

    /// All fields in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Field<'_>> {
        self.entries.iter().map(|e| Field {
            known: e.known,
            name: self.name(e),
            value: self.value(e),
        })
    }

    /// Appends a field. Such a field counts as ours: no received `Connection` field removes it.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), BadField> {
        if !is_token(name) || name.len() > u16::MAX as usize {
            return Err(BadField::Name);
        }
        self.append(Known::classify(name), name, value, 0)
    }

    /// Appends a field of a known name, in its usual spelling.
    ///
    /// # Errors
    /// [`BadField::Name`] for [`Known::Other`] and [`Known::Lookalike`], which have no spelling.
    pub fn push_known(&mut self, known: Known, value: &[u8]) -> Result<(), BadField> {
        if known.name().is_empty() {
            return Err(BadField::Name);
        }
        self.append(known, known.name().as_bytes(), value, 0)
    }

    /// Appends a field received from the other side in a form that was already split (HTTP/2).
    pub fn push_received(&mut self, name: &[u8], value: &[u8]) -> Result<(), BadField> {
        if !is_token(name) || name.len() > u16::MAX as usize {
            return Err(BadField::Name);
        }
        self.append(Known::classify(name), name, value, RECEIVED)
    }

    /// Replaces all fields of this name by one, which becomes the last.
    pub fn set(&mut self, name: &[u8], value: &[u8]) -> Result<(), BadField> {
        self.push(name, value)?;
        self.keep_only_last(name);
        Ok(())
    }

    /// Replaces all fields of a known name by one, which becomes the last.
    ///
    /// # Errors
    /// As [`Fields::push_known`].
    pub fn set_known(&mut self, known: Known, value: &[u8]) -> Result<(), BadField> {
        self.push_known(known, value)?;
        let last = self.entries.len() - 1;
        let mut at = 0;
        self.entries.retain(|e| {
            at += 1;
            at > last || e.known != known
        });
        Ok(())
    }

    /// Removes all fields of a known name; true when there was one.
    pub fn remove(&mut self, known: Known) -> bool {
        if !self.has(known) {
            return false;
        }
        self.entries.retain(|e| e.known != known);
        self.present &= !known.bit();
        true
    }

    /// Removes all fields with this name in any case; true when there was one.
    pub fn remove_named(&mut self, name: &[u8]) -> bool {
        let before = self.entries.len();
        let bytes = &self.bytes;
        self.entries.retain(|e| !entry_name(bytes, e).eq_ignore_ascii_case(name));
        self.recount();
        self.entries.len() != before
    }

    /// Removes all fields that CGI-style endpoints read under this name ([`is_alike`]).
    pub fn remove_alike(&mut self, name: &[u8]) {
        let bytes = &self.bytes;
        self.entries.retain(|entry| !is_alike(entry_name(bytes, entry), name));
        self.recount();
    }

    /// Replaces all fields that CGI-style endpoints read under this name by one, which becomes the last.
    ///
    /// # Errors
    /// As [`Fields::push`]; nothing is changed then.
    pub fn set_alike(&mut self, name: &[u8], value: &[u8]) -> Result<(), BadField> {
        self.push(name, value)?;
        let last = self.entries.pop();
        self.remove_alike(name);
        self.entries.extend(last);
        self.recount();
        Ok(())
    }

    /// Whether a received `Connection` field names this field.
    pub fn is_nominated(&self, name: &[u8]) -> bool {
        framing::lists(self, Known::Connection, name)
    }

    /// Removes the fields for which `remove` says so.
    pub fn remove_where(&mut self, mut remove: impl FnMut(Field<'_>) -> bool) {
        let bytes = &self.bytes;
        self.entries.retain(|e| {
            !remove(Field {
                known: e.known,
                name: entry_name(bytes, e),
                value: entry_value(bytes, e),
            })
        });
        self.recount();
    }

    /// Removes what concerns the connection a message came on only: `Connection`, everything it
    /// names that it may remove, and [hop-by-hop](Known::is_hop_by_hop) names. `TE: trailers` stays.
    ///
    /// For messages that go on in HTTP/2; the HTTP/1 serialisers leave these fields out themselves.
    pub fn strip_hop_by_hop(&mut self) {
        let trailers = framing::lists(self, Known::Te, b"trailers");
        for at in 0..self.entries.len() {
            let entry = self.entries[at];
            if entry.known.is_hop_by_hop() || self.connection_removes(&entry) {
                self.entries[at].flags |= DOOMED;
            }
        }
        self.entries.retain(|e| e.flags & DOOMED == 0);
        self.recount();
        if trailers {
            // A constant that is a valid value.
            let _ = self.append(Known::Te, b"TE", b"trailers", RECEIVED);
        }
    }

    /// True when a `Connection` field names this field and may remove it: it was received, and it
    /// neither frames nor routes nor vouches. What has its own rule (`Upgrade`, which a `Connection`
    /// that asks for it always names) is not decided here.
    pub(crate) fn connection_removes(&self, entry: &Entry) -> bool {
        entry.flags & RECEIVED != 0
            && !entry.known.is_guarded()
            && !entry.known.is_hop_by_hop()
            && framing::lists(self, Known::Connection, self.name(entry))
    }

    /// Takes out of received trailers what may not stand there ([`Known::may_trail`]).
    pub fn keep_trailers(&mut self) {
        self.remove_where(|field| !field.known.may_trail() || is_claim(field.name));
    }

    /// Takes out what was received under names by which proxies tell of a client, but those in their
    /// plain spelling that are `believed`; and look-alikes of guarded names.
    #[inline]
    pub fn remove_claims(&mut self, believed: impl Fn(Field<'_>) -> bool) {
        if !self.has_any(claims::KNOWN | Known::Lookalike.bit() | Known::Other.bit()) {
            return;
        }
        let bytes = &self.bytes;
        let goes = |entry: &Entry| {
            let (known, name) = (entry.known, entry_name(bytes, entry));
            let is_claim = match known {
                Known::Other => is_claim(name),
                Known::Lookalike => return entry.flags & RECEIVED != 0,
                known => claims::KNOWN & known.bit() != 0,
            };
            is_claim
                && entry.flags & RECEIVED != 0
                && (is_odd(name)
                    || !believed(Field { known, name, value: entry_value(bytes, entry) }))
        };
        if self.entries.iter().any(goes) {
            self.entries.retain(|entry| !goes(entry));
            self.recount();
        }
    }

    /// Joins all `Cookie` fields into one, as HTTP/1 wants what HTTP/2 may split (RFC 9113, 8.2.3).
    /// Pieces that are empty hold no cookie and leave no separator.
    pub fn join_cookies(&mut self) {
        if self.count(Known::Cookie) < 2 {
            return;
        }
        let mut joined = Vec::new();
        for value in self.get_all(Known::Cookie).filter(|value| !value.is_empty()) {
            if !joined.is_empty() {
                joined.extend_from_slice(b"; ");
            }
            joined.extend_from_slice(value);
        }
        self.remove(Known::Cookie);
        // Values that were received are fit to be written, and so is their concatenation.
        let _ = self.append(Known::Cookie, b"Cookie", &joined, RECEIVED);
    }

    /// Starts a received block whose text is `text`; entries follow by [`Fields::received`].
    #[inline]
    pub(crate) fn begin_block(&mut self, text: &[u8]) {
        self.clear();
        self.bytes.extend_from_slice(text);
    }

    /// Adds an entry of the block given to [`Fields::begin_block`].
    #[inline]
    pub(crate) fn received(&mut self, entry: Entry) {
        self.repeated |= self.present & entry.known.bit();
        self.present |= entry.known.bit();
        self.entries.push(entry);
    }

    /// True when a block as received has this name more than once. Constant time.
    #[inline]
    pub(crate) fn was_repeated(&self, known: Known) -> bool {
        self.repeated & known.bit() != 0
    }

    #[inline]
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Keeps the entries for which `keep` says so; it may shorten them in the arena.
    pub(crate) fn retain_entries(&mut self, mut keep: impl FnMut(&mut [u8], &mut Entry) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain_mut(|entry| keep(bytes, entry));
        self.recount();
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[inline]
    pub(crate) fn name(&self, entry: &Entry) -> &[u8] {
        entry_name(&self.bytes, entry)
    }

    #[inline]
    pub(crate) fn value(&self, entry: &Entry) -> &[u8] {
        entry_value(&self.bytes, entry)
    }

    /// Where the first field of this name stands in its block, for error messages.
    pub(crate) fn offset_of(&self, known: Known) -> usize {
        self.entries.iter().find(|e| e.known == known).map_or(0, |e| e.name_start as usize)
    }

    fn append(
        &mut self,
        known: Known,
        name: &[u8],
        value: &[u8],
        flags: u8,
    ) -> Result<(), BadField> {
        let value = framing::trim_ows(value);
        let name_start = self.bytes.len();
        let value_start = name_start + name.len() + 2;
        let end = value_start + value.len() + 2;
        if !is_value(value) || u32::try_from(end).is_err() {
            return Err(BadField::Value);
        }
        self.bytes.reserve(end - name_start);
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
        self.present |= known.bit();
        self.entries.push(Entry {
            name_start: name_start as u32,
            value_start: value_start as u32,
            value_len: value.len() as u32,
            name_len: name.len() as u16,
            known,
            flags: flags | CANONICAL,
        });
        Ok(())
    }

    /// Removes all but the first field of a known name.
    pub(crate) fn keep_only_first(&mut self, known: Known) {
        let mut seen = false;
        self.entries.retain(|e| e.known != known || !std::mem::replace(&mut seen, true));
    }

    fn keep_only_last(&mut self, name: &[u8]) {
        let last = self.entries.len() - 1;
        let mut at = 0;
        let bytes = &self.bytes;
        self.entries.retain(|e| {
            at += 1;
            at > last || !entry_name(bytes, e).eq_ignore_ascii_case(name)
        });
    }

    fn recount(&mut self) {
        self.present = self.entries.iter().fold(0, |bits, e| bits | e.known.bit());
    }
}

impl PartialEq for Fields {
    /// Equal names (byte for byte), values and order; the arenas may differ.
    fn eq(&self, other: &Fields) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Fields {}

#[inline]
fn entry_name<'a>(bytes: &'a [u8], entry: &Entry) -> &'a [u8] {
    let start = entry.name_start as usize;
    &bytes[start..start + entry.name_len as usize]
}

#[inline]
fn entry_value<'a>(bytes: &'a [u8], entry: &Entry) -> &'a [u8] {
    let start = entry.value_start as usize;
    &bytes[start..start + entry.value_len as usize]
}

/// A token of RFC 9110, 5.6.2, not empty.
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token_byte(byte))
}

pub(crate) fn is_token_byte(byte: u8) -> bool {
    TOKEN[byte as usize]
}

static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let marks = b"!#$%&'*+-.^_`|~";
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
};

/// Visible bytes, spaces, tabs and bytes above 127: nothing that could end or split a line.
pub(crate) fn is_value(text: &[u8]) -> bool {
    text.iter().all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}
