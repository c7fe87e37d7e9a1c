//! What is in a recording (`treering drive info`): one pass for what only the whole tells of its
//! causes ([`crate::causes`]), and one that counts.
//!
//! | part | how | memory |
//! |---|---|---|
//! | bytes, writes, flushes, discards by cause | sums | |
//! | overwrite distances, hot blocks | the last write of each block | 32 bytes a written block |
//! | hot extents, top files | sums a MiB of the drive, and a file | 64 bytes each |
//! | compressibility | zlib level 1 of whole blocks, sampled by a hash above 20,000 | |
//! | timeline | sums in windows of equal length, 64 to 128 of them | |

mod blocks;
mod collect;
mod contents;
mod html;
mod render;
mod report;
mod timeline;

#[cfg(test)]
mod tests;

pub use collect::info;
pub use report::{
    Alignment, CauseInfo, ContentsInfo, FileInfo, Flushes, HotExtent, Hottest, InfoReport,
    Overwrites,
};
pub use timeline::Window;

impl InfoReport {
    /// Renders the report as text.
    #[must_use]
    pub fn render_text(&self) -> String {
        render::text(self)
    }

    /// Renders the report as one self-contained HTML page with pictures.
    #[must_use]
    pub fn render_html(&self) -> String {
        html::page(self)
    }
}
