//! Pixels that are multiplied here, for programs that began at a display without `wp_alpha_modifier`.
//!
//! Requests are in `alpha`. The factor is state of a commit. While it is below one, the surface has no opaque region,
//! what leaves is ARGB, and the pixels are kept a second time, as the program drew them: a commit may change the factor
//! alone, and then all of them are made anew. It stays so at every display, whether that has the protocol or not: it is
//! never multiplied twice. Invariant: the painter has the plain content times the factor; where the factor is one,
//! nothing else is kept.

use wayferry_pixels::{Content, Format, convert};

use crate::message::{Request, WireArg, WireId};
use crate::tables;

use super::unsent::{Kind, State};

/// What is kept of a surface whose pixels may be multiplied.
#[derive(Debug)]
pub(crate) struct Fade {
    /// Its `wp_alpha_modifier_surface_v1`.
    object: Option<u32>,
    /// As committed, in parts of [`ONE`].
    factor: u32,
    /// The pixels as the program drew them, while the factor is below one.
    plain: Option<Content>,
    /// The arguments of the last `set_opaque_region` that was committed.
    opaque: Vec<WireArg>,
}

impl Default for Fade {
    fn default() -> Self {
        Self { object: None, factor: ONE, plain: None, opaque: Vec::new() }
    }
}

impl Fade {
    /// Its `wp_alpha_modifier_surface_v1`.
    pub(crate) fn object(&self) -> Option<u32> {
        self.object
    }

    /// There is another one, or none; returns the one before.
    pub(crate) fn set_object(&mut self, object: Option<u32>) -> Option<u32> {
        std::mem::replace(&mut self.object, object)
    }

    /// The content to show, of one that is new, of the one that was kept plain, or of what is shown.
    pub(crate) fn apply(&mut self, new: Option<Content>, shown: Option<&Content>) -> Option<Content> {
        let plain = new.or(self.plain.take()).or_else(|| shown.cloned())?;
        let content = if self.is_on() { multiplied(&plain, self.factor) } else { plain.clone() };
        self.plain = self.is_on().then_some(plain);
        Some(content)
    }

    /// Whether pixels are multiplied with less than one.
    pub(crate) fn is_on(&self) -> bool {
        self.factor < ONE
    }

    /// What is kept beside the content that leaves.
    pub(crate) fn bytes(&self) -> u64 {
        self.plain.as_ref().map_or(0, |plain| plain.pixels().len() as u64)
    }

    /// What a buffer's pixels take that are kept so, in all.
    pub(crate) fn needs(&self, plain: u64, pixels: u64) -> u64 {
        self.will_need(None, plain, pixels)
    }

    /// The same once this factor, if there is one, is committed.
    pub(crate) fn will_need(&self, factor: Option<u32>, plain: u64, pixels: u64) -> u64 {
        if factor.unwrap_or(self.factor) < ONE { plain + pixels * BYTES } else { plain }
    }

    /// There is no content any more, or another one that is not multiplied.
    pub(crate) fn forget_plain(&mut self) {
        self.plain = None;
    }

    /// A commit with this factor and this state of surface `id`; returns whether it is another factor than before.
    pub(crate) fn commit(
        &mut self,
        id: WireId,
        factor: Option<u32>,
        state: &mut State,
    ) -> Result<bool, &'static str> {
        let changed = factor.is_some_and(|factor| factor != self.factor);
        self.factor = factor.unwrap_or(self.factor);
        let Some(opcode) =
            tables::interface("wl_surface").and_then(|of| tables::request_opcode(of, "set_opaque_region"))
        else {
            return Ok(changed);
        };
        let is_it = |request: &Request| (request.object, request.opcode) == (id, opcode);
        let newest =
            state.iter().find(|(request, _)| is_it(request)).map(|(request, _)| request.args.clone());
        let is_set = newest.is_some();
        self.opaque = newest.unwrap_or_else(|| std::mem::take(&mut self.opaque));
        let args = match self.is_on() {
            true if is_set || changed && !self.opaque.is_empty() => vec![WireArg::Object(WireId::NULL)],
            false if changed && !is_set && !self.opaque.is_empty() => self.opaque.clone(),
            _ => return Ok(changed),
        };
        state.add(Request { object: id, opcode, args }, Kind::Replaces)?;
        Ok(changed)
    }
}

/// Pixels times a factor. They are premultiplied, so that is what becomes of each channel.
fn multiplied(plain: &Content, factor: u32) -> Content {
    let size = plain.size();
    let mut faded = Content::new(size, Format::Argb8888);
    let times =
        |channel: usize| ((channel as u64 * u64::from(factor) + u64::from(ONE / 2)) / u64::from(ONE)) as u8;
    let table: [u8; 256] = std::array::from_fn(times);
    let mut row = vec![0; size.width() as usize * BYTES as usize];
    for y in 0..size.height() {
        convert::row(plain.format(), plain.row(y, 0, size.width()), &mut row);
        // What has no alpha is opaque.
        row.iter_mut().for_each(|byte| *byte = table[usize::from(*byte)]);
        faded.write_row(y, 0, &row);
    }
    faded
}

/// `set_multiplier` with this changes nothing.
pub(super) const ONE: u32 = u32::MAX;
/// Bytes of a pixel of [`Format::Argb8888`].
const BYTES: u64 = 4;
