//! Where the tensors of a GraphSAGE lie.

use super::SageArchitecture;
use crate::jk::Jk;
use crate::kernel;
use crate::layer::Norm;
use crate::layout::{Layout, Start, Tensor as Place, hidden_padded};

/// Block `i` has the linear layer `i`, the norm's vectors `2i` and `2i + 1`, and the statistics of the same numbers; the
/// last linear layer follows them all.
pub(super) fn layout(arch: &SageArchitecture) -> Layout {
    let mut layout = Layout::empty();
    let (hidden, wide) = (arch.hidden, hidden_padded(arch.hidden));
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
            ((hidden, wide), groups * hidden)
        };
        layout.linear(&name, group, inputs, (hidden, wide), Some(0));
        if arch.hops().contains(&block) {
            let start = Start::Uniform(1.0 / (hidden as f32).sqrt());
            layout.start_last(start, start);
        }
        layout.linears[block].needs_transposed = block > 0;
        if arch.norm != Norm::None {
            layout.vector(&format!("{name}.norm.weight"), hidden, Start::Constant(1.0), Some(0));
            layout.vector(&format!("{name}.norm.bias"), hidden, Start::Constant(0.0), Some(0));
        }
        if arch.norm == Norm::Batch {
            for (what, start) in [("running_mean", 0.0), ("running_var", 1.0)] {
                let at = layout.statistics.len() * hidden;
                layout.statistics.push(Place {
                    name: format!("{name}.norm.{what}"),
                    shape: vec![hidden],
                    range: at..at + hidden,
                    start: Start::Constant(start),
                    branch: Some(0),
                });
            }
        }
    }
    layout.linear(
        &format!("head.{last}"),
        (hidden, wide),
        hidden,
        (arch.classes, kernel::padded(arch.classes)),
        None,
    );
    layout
}
