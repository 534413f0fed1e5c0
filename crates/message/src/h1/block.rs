//! From httparse's slices to [`Fields`], with the line ends httparse lets pass checked.

use std::mem::MaybeUninit;

use super::MAX_FIELDS;
use crate::error::{Fault, HeadError};
use crate::fields::{CANONICAL, Entry, Fields, RECEIVED};
use crate::known::Known;

/// Room for httparse's results; on the stack and not initialised.
pub(super) type Slots<'b> = [MaybeUninit<httparse::Header<'b>>; MAX_FIELDS];

/// No slot filled. Costs nothing.
pub(super) fn empty_slots<'b>() -> Slots<'b> {
    [const { MaybeUninit::uninit() }; MAX_FIELDS]
}

/// Where `part`, a slice of `whole`, begins in it.
#[inline]
pub(super) fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

/// Copies a section of field lines, `head[start..]`, in one piece and lists its fields.
///
/// # Errors
/// [`Fault::BareLf`] where a line, the empty last one included, does not end with CR LF.
#[inline]
pub(super) fn take_fields(
    head: &[u8],
    start: usize,
    headers: &[httparse::Header<'_>],
    fields: &mut Fields,
) -> Result<(), HeadError> {
    fields.begin_block(&head[start..]);
    let mut line = start;
    for header in headers {
        let name = header.name.as_bytes();
        let name_end = line + name.len();
        let value_start = offset_in(head, header.value);
        let mut end = value_start + header.value.len();
        while matches!(head.get(end), Some(b' ' | b'\t')) {
            end += 1;
        }
        // Each name must stand where the line before it ended; httparse has seen a line end here.
        if offset_in(head, name) != line || head.get(end) != Some(&b'\r') {
            return Err(HeadError { fault: Fault::BareLf, offset: end });
        }
        let Ok(name_len) = u16::try_from(name.len()) else {
            return Err(HeadError { fault: Fault::HeadTooLarge, offset: line });
        };
        let canonical = value_start == name_end + 2
            && head[name_end + 1] == b' '
            && end == value_start + header.value.len();
        fields.received(Entry {
            name_start: (line - start) as u32,
            value_start: (value_start - start) as u32,
            value_len: header.value.len() as u32,
            name_len,
            known: Known::classify_in(head, line, name.len()),
            flags: if canonical { RECEIVED | CANONICAL } else { RECEIVED },
        });
        line = end + 2;
    }
    if line + 2 != head.len() {
        return Err(HeadError { fault: Fault::BareLf, offset: line });
    }
    Ok(())
}
