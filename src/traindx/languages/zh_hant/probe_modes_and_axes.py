"""F012, E015, E016 and E017, and the probes that feed them."""

MESSAGES: dict[str, str] = {
    "no weights of a softmax average anything in the open": (
        "看得到的運算中，沒有 softmax 權重用來取平均"
    ),
    "Attention's softmax is taken over another axis than the one that is averaged over.": (
        "注意力的 softmax 所沿的軸，不是取平均的那個軸。"
    ),
    "in `{place}` ({kind}) a softmax over a single score gives weights of {shape} that are all 1, "
    "and what they should average is summed": (
        "在 `{place}`（{kind}）中，對單一分數取 softmax，得到形狀 {shape}、全為 1 的權重，"
        "本應取平均的內容因此變成相加"
    ),
    "in `{place}` ({kind}) weights of {shape} sum to 1 along axis {axis}, where their softmax was "
    "taken, but what they average lies along axis {over}, over which they sum to {low:.3g} up to "
    "{high:.3g}": (
        "在 `{place}`（{kind}）中，形狀 {shape} 的權重沿第 {axis} 軸的和為 1，softmax 即沿此軸；"
        "但被平均的內容排在第 {over} 軸，權重沿該軸的和為 {low:.3g} 至 {high:.3g}"
    ),
    "The keys do not compete with each other for a query.": "各個鍵並未彼此競爭同一個查詢。",
    "weights = scores.softmax(dim=-1)  # of scores of (…, queries, keys)": (
        "weights = scores.softmax(dim=-1)  # 分數的形狀為（…, 查詢, 鍵）"
    ),
    "positions that a mask leaves nothing to attend to": "遮罩後沒有任何可注意之處的位置",
    "weights that are normalized once more": "再次正規化的權重",
    "clusters that compete for a sample": "彼此競爭樣本的群集",
    "Places where weights of a softmax are multiplied with something and summed.": (
        "softmax 的權重與其他量相乘後相加之處的數目。"
    ),
    "How far from 1 the weights of one such sum are in all, at most.": (
        "其中一個加總的權重之和，最多偏離 1 多少。"
    ),
    "its softmax is over axis {axis} of {shape}, but the classes are axis {classes}": (
        "其 softmax 沿形狀 {shape} 的第 {axis} 軸，但類別是第 {classes} 軸"
    ),
    "The places compete with each other for a class, and not the classes for a place.": (
        "這使得各位置彼此競爭一個類別，而不是各類別競爭一個位置。"
    ),
    "In training the model computes something else than in evaluation, and it is not dropout.": (
        "訓練時模型所算的與評估時不同，且並非 dropout 所致。"
    ),
    "without noise the output in training lies {gap:.2g} of its RMS from that in evaluation; it "
    "begins in `{place}` ({kind})": (
        "除去雜訊後，訓練時的輸出與評估時相差其 RMS 的 {gap:.2g} 倍；始於 `{place}`（{kind}）"
    ),
    "It computes something else if `self.training` is set.": (
        "`self.training` 為真時，它算的是另一回事。"
    ),
    "Look in `{place}` for `self.training`, and let both ways compute the same on average.": (
        "在 `{place}` 中尋找 `self.training`，讓兩條路徑平均而言算出相同的結果。"
    ),
    "dropout, which is at its mean": "dropout：以其平均代替",
    "batch normalization, which uses its running statistics in both": (
        "批次正規化：兩者都使用累計統計量"
    ),
    "A dropout drops in training, and neither training nor evaluation makes up for it.": (
        "dropout 在訓練時丟棄，訓練與評估卻都沒有補償。"
    ),
    "`{place}` ({kind}) drops {dropped:.0%} in training and does not make up for it, so that the "
    "mean of the output lies {gap:.2g} of its RMS from that in evaluation": (
        "`{place}`（{kind}）在訓練時丟棄 {dropped:.0%} 而未補償，"
        "使輸出的平均與評估時相差其 RMS 的 {gap:.2g} 倍"
    ),
    "The mask is not divided by the part that it keeps.": "遮罩沒有除以保留的比例。",
    "F.dropout(x, p, training=self.training)  # or by hand: x * mask / (1 - p)": (
        "F.dropout(x, p, training=self.training)  # 或自行計算：x * mask / (1 - p)"
    ),
    "a scale in evaluation instead": "改在評估時縮放",
    "masks over what is put in": "作用於輸入的遮罩",
    "What is left of it when dropout does what it does on average, and batch normalization uses "
    "its running statistics.": (
        "以 dropout 的平均作用代替，且批次正規化使用累計統計量時，其中剩下的差距。"
    ),
    "Variance that a batch normalization is given in training, with dropout before it, over that "
    "without dropout, as in evaluation.": (
        "訓練時批次正規化的輸入（其前有 dropout）的變異數，與評估時沒有 dropout 的變異數之比。"
    ),
    "Dropout before a batch normalization gives it another variance than evaluation will.": (
        "批次正規化之前的 dropout，使它遇到的變異數與評估時不同。"
    ),
    "with the dropout of `{dropout}` (p = {p:g}) `{norm}` is given {shift:.2f} times the variance "
    "that it will be given in evaluation": (
        "在 `{dropout}`（p = {p:g}）的 dropout 下，`{norm}` 的輸入變異數是評估時的 {shift:.2f} 倍"
    ),
    "Dropout keeps the mean and adds variance; the running variance includes it.": (
        "dropout 保持平均而增加變異數；累計變異數包含了這一部分。"
    ),
    "Move `{dropout}` behind the last normalization.": "把 `{dropout}` 移到最後一個正規化之後。",
    "the model is called with other weights than its own": "模型以並非自身的權重被呼叫",
    "the loss differentiates the model's output": "損失會對模型的輸出求導",
}
