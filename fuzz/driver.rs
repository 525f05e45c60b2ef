//! Hands what libFuzzer makes up to a target of `crates/fuzz`.

/// Panics end the process, but for those that a reader of damaged files expects.
pub fn prepare() {
    std::panic::set_hook(Box::new(|panic| {
        if !progap_graph::read::table::catches_panics() {
            eprintln!("{panic}");
            std::process::abort();
        }
    }));
}

macro_rules! drive {
    ($name:literal) => {
        static TARGET: std::sync::LazyLock<progap_fuzz::Target> =
            std::sync::LazyLock::new(|| progap_fuzz::target($name).expect("a target of this name"));

        libfuzzer_sys::fuzz_target!(
            init: driver::prepare(),
            |content: &[u8]| (TARGET.run)(content)
        );
    };
}
pub(crate) use drive;
