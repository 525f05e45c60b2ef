//! A school of Facebook100, as MATLAB v5 file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use progap_graph::read::facebook100::{Recipe, School, prepare_school};

fuzz_target!(|content: &[u8]| {
    if let Ok(school) = School::parse(content) {
        let recipe = Recipe { min_class_count: Some(1), ..Recipe::one_school() };
        let _ = prepare_school("school", school, &recipe);
    }
});
