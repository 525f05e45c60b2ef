//! Where the tensors of a GraphSAGE lie.

use super::SageArchitecture;
use crate::jk::Jk;
use crate::kernel;
use crate::layout::{Layout, Start, padded_width};

/// Block `i` has the linear layer `i` and the norm after it; the last linear layer follows them all.
pub(super) fn layout(arch: &SageArchitecture) -> Layout {
    let mut layout = Layout::empty(arch.norm, arch.hidden);
    let (hidden, width) = (arch.hidden, padded_width(arch.hidden));
    let last = arch.head_layers - 1;
    for block in 0..arch.blocks() {
        let hop = block.wrapping_sub(arch.base_layers);
        let (name, groups) = match block {
            _ if block < arch.base_layers => (format!("base.{block}"), 1),
            _ if hop < arch.convolutions => (format!("convolutions.{hop}"), 2),
            _ if hop == arch.convolutions => {
                ("joint".into(), if arch.jk == Jk::Cat { arch.convolutions } else { 1 })
            }
            _ => (format!("head.{}", hop - arch.convolutions - 1), 1),
        };
        let (group, inputs) = if block == 0 {
            ((arch.inputs, arch.inputs), arch.inputs)
        } else {
            ((hidden, width), groups * hidden)
        };
        layout.linear(&name, group, inputs, (hidden, width), Some(0));
        if arch.convolution_blocks().contains(&block) {
            let start = Start::Uniform(1.0 / (hidden as f32).sqrt());
            layout.start_last(start, start);
        }
        layout.linears[block].needs_transposed = block > 0;
        layout.norm_after(&name, Some(0));
    }
    layout.linear(
        &format!("head.{last}"),
        (hidden, width),
        hidden,
        (arch.classes, kernel::padded(arch.classes)),
        None,
    );
    layout
}
