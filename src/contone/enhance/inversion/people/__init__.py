"""The engine for answers of people: items, persons and parameters, whatever the answers are.

    z_i = B^T phi(x_i) + tails        an item's log weights                        `chain`, `rows`, `matching`
    a_w, b_w                          a person's sharpness and offsets             `persons`
    answer ~ p(. | z_i, a_w, b_w)     what was asked: votes, marks, levels         `likelihood`

Only `likelihood` knows what an answer is: two compiled functions, `log_likelihood` of one response and `add_terms` with
its gradient and curvature by z. `Responses` holds the answers sorted by item, `Traits` what is drawn for persons;
further traits (cut points, say) are further fields of `Traits` with a step of their own in a class derived from
`Chain`. `Chain(..., centred=False)` keeps the level of z, which softmax does not see but marks and levels do.
"""
