//! ProGAP's stages with label messages: what is known about the classes of nodes, instead of embeddings
//! (docs/method.md).

pub(super) use super::progap::LABELS;
use super::{MethodKind, MethodSpec, progap};

pub(super) const SPEC: MethodSpec = MethodSpec {
    method: MethodKind::ProgapLabels,
    what: "ProGAP's stages, which aggregate what is known about the classes of nodes",
    paper: "this project; stages of Sajadmanesh and Gatica-Perez 2024, ProGAP",
    own: &["messages", "layerwise"],
    ..progap::SPEC
};
