//! The cost of privacy, before anything is spent: the noise that training would use.

use progap::{Edge, Node};

fn main() -> progap::Result<()> {
    for epsilon in [0.5, 1.0, 2.0, 4.0] {
        let plan = progap::account(Edge::epsilon(epsilon).depth(3).delta(1e-7)).plan()?;
        println!(
            "edges, epsilon {epsilon}: sums get noise of {:.2}",
            plan.aggregate_multiplier * plan.sensitivity
        );
    }

    let asked = Node::epsilon(8.0).delta(1e-5).depth(1).epochs(10);
    let plan = progap::account(asked).train_nodes(19_804).plan()?;
    println!(
        "nodes, epsilon 8: {} steps, gradients with {:.2} times their sensitivity",
        plan.steps, plan.gradient_multiplier
    );

    // With the data at hand, everything that is not given follows from it.
    let data = progap::load("demo")?;
    let plan = progap::account(Edge::epsilon(1.0)).on(&data).plan()?;
    println!("demo: epsilon {:.4} at delta {:e}, by {}", plan.epsilon, plan.delta, plan.accountant);
    Ok(())
}
