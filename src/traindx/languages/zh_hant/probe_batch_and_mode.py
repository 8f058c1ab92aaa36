"""E004 nondeterministic-eval, E007 batch-mixing, and the probes that feed them."""

MESSAGES: dict[str, str] = {
    "In evaluation, what the model makes of a sample depends on the other samples of the batch.": (
        "評估時，模型對一個樣本的輸出取決於同批次中的其他樣本。"
    ),
    "the batch has a single sample": "批次只有一個樣本",
    "whether axis 0 of the batch counts samples or steps of time is not known": (
        "無法得知批次的第 0 軸是樣本還是時間步"
    ),
    "no output has a row for each sample": "沒有任何輸出是每個樣本一列",
    "the output differs from call to call": "每次呼叫的輸出都不同",
    "{when} the output for a sample moves by {mixing:.2g} of its RMS when only the other samples "
    "of the batch are changed (rounding: at most {tolerance:.1g}); it begins in `{place}` "
    "({kind})": (
        "{when}，只改變批次中的其他樣本，一個樣本的輸出就變動其 RMS 的 {mixing:.2g} 倍"
        "（捨入誤差至多 {tolerance:.1g}）；始於 `{place}`（{kind}）"
    ),
    "It works across axis 0, where the samples are.": "它沿著第 0 軸運算，而樣本正排在這個軸上。",
    "random numbers: both runs draw the same": "隨機數：兩次執行抽到的相同",
    "outputs that compare samples with each other": "用來互相比較樣本的輸出",
    "{kind}(..., batch_first=True)  # it is given the batch first": (
        "{kind}(..., batch_first=True)  # 它的輸入以批次為第一軸"
    ),
    "Look there for `dim=0`, for a `view` or `reshape` that exchanges axes, and for a mean, "
    "softmax or norm without `dim`: samples lie along axis 0.": (
        "在該處尋找 `dim=0`、把軸對調的 `view` 或 `reshape`，以及沒有指定 `dim` 的平均、"
        "softmax 或範數：樣本排在第 0 軸。"
    ),
    "In evaluation, the model makes different outputs of the same batch.": (
        "評估時，模型對同一個批次給出不同的輸出。"
    ),
    "the model returns no real numbers": "模型不輸出實數",
    "in evaluation the output moves by {change:.2g} of its RMS from call to call, and dropout is "
    "at work; it begins in `{place}` ({kind})": (
        "評估時，各次呼叫的輸出相差其 RMS 的 {change:.2g} 倍，而且 dropout 仍在作用；"
        "始於 `{place}`（{kind}）"
    ),
    "in evaluation the output moves by {change:.2g} of its RMS from call to call; it begins in "
    "`{place}` ({kind})": (
        "評估時，各次呼叫的輸出相差其 RMS 的 {change:.2g} 倍；始於 `{place}`（{kind}）"
    ),
    "It is not told of evaluation, or `model.eval()` does not reach it.": (
        "它不知道正在評估，或 `model.eval()` 到不了它。"
    ),
    "F.dropout(x, p, training=self.training)  # or nn.Dropout(p) as an attribute, several of them "
    "in a nn.ModuleList": (
        "F.dropout(x, p, training=self.training)  # 或以 nn.Dropout(p) 作為屬性，"
        "多個則放入 nn.ModuleList"
    ),
    "what a call leaves behind": "一次呼叫留下的狀態",
    "The model draws random numbers in evaluation.": "模型在評估時抽取隨機數。",
    "A call leaves something behind that the next one uses.": "一次呼叫留下了下一次會用到的東西。",
    "It draws from a generator of its own, or uses kernels that are not deterministic.": (
        "它使用自己的隨機數產生器，或使用了不具確定性的核心。"
    ),
    "If that is not meant: do it under `if self.training:` only.": (
        "若非本意：只在 `if self.training:` 之下這樣做。"
    ),
    "the model is trained in evaluation mode": "模型以評估模式訓練",
    "How far, of its RMS, the output for a sample moves in evaluation when only the other samples "
    "of the batch are changed.": (
        "評估時只改變批次中的其他樣本，一個樣本的輸出變動多少（以其 RMS 計）。"
    ),
    "The same in training.": "同上，於訓練時。",
    "How far, of its RMS, the output moves in evaluation from call to call.": (
        "評估時，各次呼叫的輸出變動多少（以其 RMS 計）。"
    ),
    "How far, of its RMS, the output in training lies from that in evaluation, before training.": (
        "訓練開始前，訓練模式的輸出與評估模式的輸出相差多少（以其 RMS 計）。"
    ),
}
