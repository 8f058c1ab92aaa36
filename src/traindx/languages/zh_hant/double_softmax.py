"""L002 double-softmax."""

MESSAGES: dict[str, str] = {
    "no cross-entropy or likelihood over classes was seen": "沒有看到分類用的交叉熵或概似損失",
    "the cross-entropy of {model} is given probabilities: {what}; over {classes} classes its "
    "loss cannot fall below ln(1 + ({classes} - 1)/e) = {floor:.4g}, and the lowest so far is "
    "{lowest:.4g}": (
        "{model} 的交叉熵收到的是機率：{what}；在 {classes} 個類別下，損失不可能低於 "
        "ln(1 + ({classes} - 1)/e) = {floor:.4g}，目前最低為 {lowest:.4g}"
    ),
    "the likelihood loss of {model} is given probabilities where it expects their logarithms: "
    "{what}; so the loss is negative, the lowest so far {lowest:.4g} (of {classes} classes)": (
        "{model} 的概似損失應收到機率的對數，卻收到機率本身：{what}；因此損失為負，目前最低為 "
        "{lowest:.4g}（共 {classes} 個類別）"
    ),
    "a softmax stands right before it, and each row sums to 1": (
        "損失前緊接著一個 softmax，且每一列的總和為 1"
    ),
    "no element is negative and each row sums to 1, on two batches": (
        "在兩個批次中都沒有負的元素，且每一列的總和為 1"
    ),
    "`nn.NLLLoss` takes no logarithm itself, and none stands before it.": (
        "`nn.NLLLoss` 本身不取對數，而它之前也沒有取對數。"
    ),
    "`nn.CrossEntropyLoss` applies a softmax itself, so that there are two of them.": (
        "`nn.CrossEntropyLoss` 本身就會套用 softmax，因此一共套用了兩次。"
    ),
    "loss = F.nll_loss(F.log_softmax(scores, dim=1), target)  # scores: before the softmax": (
        "loss = F.nll_loss(F.log_softmax(scores, dim=1), target)  # scores：softmax 之前的輸出"
    ),
    "loss = F.cross_entropy(scores, target)  # scores: the model's output before the softmax": (
        "loss = F.cross_entropy(scores, target)  # scores：模型在 softmax 之前的輸出"
    ),
    "rows that sum to 1 by chance": "各列的總和碰巧為 1",
    "a second `log_softmax`, which changes nothing": "第二個 `log_softmax`（不會改變任何結果）",
}
