//! Data that a program has in memory, a model that stays there: nothing is written.

use progap::{Dataset, Node};

fn main() -> progap::Result<()> {
    // 600 people in two groups. Neighbours are mostly of the same group, and the two columns say little about it.
    let group = |person: u32| person % 2;
    let neighbours = (0..600).flat_map(|person| [2, 4, 6, 8, 9].map(|step| (person, (person + step) % 600)));
    let features: Vec<f32> =
        (0..600).flat_map(|person| [group(person) as f32 * 0.3, (person % 7) as f32 / 7.0]).collect();
    let labels: Vec<u32> = (0..600).map(group).collect();
    let part = |low: usize, high: usize| -> Vec<bool> {
        (0..600).map(|person| (low..high).contains(&(person * 7 % 20))).collect()
    };
    let data = Dataset::builder()
        .name("club")
        .edges(neighbours)
        .symmetrise()
        .features(2, &features)
        .labels(&labels)
        .class_names(["red", "blue"])
        .masks(&part(0, 15), &part(15, 17), &part(17, 20))
        .build()?;

    // Everyone's record is protected: features, label, and own list of neighbours.
    let model = progap::train(&data, Node::epsilon(8.0).batch_size(64).max_degree(20)).in_memory()?;
    println!("{}", model.guarantee());
    println!("{}", model.statement.in_words);
    let one = model.predict_nodes(&[42])?;
    println!("person 42 is {}", data.class_names()[one.classes[0] as usize]);
    Ok(())
}
