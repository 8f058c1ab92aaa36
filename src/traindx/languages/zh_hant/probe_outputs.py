"""L003 output-loss-mismatch, and its probe."""

MESSAGES: dict[str, str] = {
    "The activation of the output, the loss and the target do not belong together.": (
        "輸出的激活函數、損失與目標彼此不相配。"
    ),
    "Known loss functions that compare an output with a target.": (
        "將輸出與目標作比較的已知損失函數的個數。"
    ),
    "no comparison of an output with a target was seen": "沒有看到輸出與目標的比較",
    "the output, the loss and the target of {model} do not belong together: {what}": (
        "{model} 的輸出、損失與目標彼此不相配：{what}"
    ),
    "the output has the shape {prediction}, the target {target}, so that every output is "
    "compared with every target": (
        "輸出的形狀為 {prediction}，目標為 {target}，因此每個輸出都與每個目標作比較"
    ),
    "Broadcasting makes a table of both, and the best answer to it is a constant.": (
        "廣播把兩者展開成一張表，而對這張表最好的答案是一個常數。"
    ),
    "loss = loss_function(output.reshape(target.shape), target)": (
        "loss = loss_function(output.reshape(target.shape), target)"
    ),
    "`{loss}` is over a single class, so that it is 0 whatever the output": (
        "`{loss}` 只有一個類別，因此不論輸出為何都是 0"
    ),
    "The softmax of one score is always 1.": "單一分數的 softmax 永遠是 1。",
    "For yes or no use `binary_cross_entropy_with_logits`, or give the model one output for each "
    "class.": (
        "若為是非題，請改用 `binary_cross_entropy_with_logits`，或讓模型對每個類別各有一個輸出。"
    ),
    "the output is a softmax over a single score, which is 1 whatever the score": (
        "輸出是單一分數的 softmax，不論分數為何都是 1"
    ),
    "A softmax compares scores along its axis, and there is only one.": (
        "softmax 沿著軸比較各個分數，而這裡只有一個。"
    ),
    "Use a sigmoid for a single score, or take the softmax over the axis of the classes.": (
        "單一分數請用 sigmoid，或沿著類別的軸取 softmax。"
    ),
    "its softmax is over axis {axis} of {shape}, the samples of the batch": (
        "其 softmax 沿著 {shape} 的第 {axis} 軸，也就是批次中的樣本"
    ),
    "What a sample is told then depends on its neighbours in the batch.": (
        "如此一來，一個樣本的結果取決於批次中的其他樣本。"
    ),
    "Take it over the classes: `dim={axis}`.": "請沿著類別取：`dim={axis}`。",
    "`{first}` is followed by `{second}`": "`{first}` 之後又接著 `{second}`",
    "The second is given numbers from 0 to 1, and its own answer hardly varies.": (
        "第二個收到的是 0 到 1 的數，因此它的結果幾乎不變。"
    ),
    "Take one of the two out.": "請拿掉其中一個。",
    "`{loss}` takes scores, and is given what a {activation} has made of them": (
        "`{loss}` 應收到分數，卻收到經過 {activation} 的結果"
    ),
    "The loss applies its own, so that its gradient is small and its best value far off.": (
        "損失本身就會套用，因此梯度很小，最佳值也遙不可及。"
    ),
    "Leave the {activation} out at the end of the model.": "請拿掉模型最後的 {activation}。",
    "`ctc_loss` takes logarithms of probabilities that sum to 1 over the symbols, and is given "
    "numbers from {low:.4g} to {high:.4g} that do not": (
        "`ctc_loss` 應收到對各符號總和為 1 的機率的對數，卻收到從 {low:.4g} 到 {high:.4g}、"
        "並非如此的數"
    ),
    "It does not normalize: larger scores lower it whatever they say, below 0 as well.": (
        "它不做歸一化：分數越大損失就越低，不論其內容，甚至低於 0。"
    ),
    "loss = ctc(scores.log_softmax(-1), targets, input_lengths, target_lengths)": (
        "loss = ctc(scores.log_softmax(-1), targets, input_lengths, target_lengths)"
    ),
    "`{loss}` takes the classes on axis 1 of {shape}, but a linear layer has put them on the last "
    "axis": "`{loss}` 的類別應在 {shape} 的第 1 軸，但線性層把它們放在最後一軸",
    "loss = loss_function(output.movedim(-1, 1), target)": (
        "loss = loss_function(output.movedim(-1, 1), target)"
    ),
    "`{loss}` takes targets of -1 and 1, and is given 0 and 1": (
        "`{loss}` 的目標應為 -1 與 1，卻收到 0 與 1"
    ),
    "What is multiplied by 0 has no gradient: samples of that class teach nothing.": (
        "乘以 0 的項沒有梯度：該類別的樣本什麼也教不了。"
    ),
    "target = 2 * target - 1": "target = 2 * target - 1",
    "`{loss}` takes logarithms of probabilities, which are never above 0, and is given numbers "
    "up to {largest:.4g}": (
        "`{loss}` 應收到機率的對數（永遠不大於 0），卻收到最大為 {largest:.4g} 的數"
    ),
    "The loss has no lower bound then, or falls without any answer getting better.": (
        "如此一來損失沒有下界，或是下降了而答案並沒有變好。"
    ),
    "Put `F.log_softmax(scores, dim=1)` before it.": (
        "請在它之前加上 `F.log_softmax(scores, dim=1)`。"
    ),
    "`{loss}` takes targets from 0 to 1, and is given {low:.4g} to {high:.4g}": (
        "`{loss}` 的目標應在 0 到 1 之間，卻收到 {low:.4g} 到 {high:.4g}"
    ),
    "Beyond 0 and 1 the loss has no lower bound, and pays for ever larger scores.": (
        "超出 0 與 1 時損失沒有下界，分數越大越有利。"
    ),
    "Make the targets 0 and 1, or use `cross_entropy` for several classes.": (
        "請將目標改為 0 與 1；若有多個類別，請用 `cross_entropy`。"
    ),
    "0 to 1": "0 到 1",
    "-1 to 1": "-1 到 1",
    "0 and more": "0 以上",
    "a {activation} at the end gives {reach}, but {fraction:.0%} of the targets lie outside "
    "({low:.4g} to {high:.4g})": (
        "最後的 {activation} 只能給出 {reach}，但有 {fraction:.0%} 的目標在此之外"
        "（{low:.4g} 到 {high:.4g}）"
    ),
    "No weights can make the output meet those targets.": "沒有任何權重能讓輸出達到那些目標。",
    "End the model with a plain linear layer, or scale the targets into that range.": (
        "請以單純的線性層作為模型的結尾，或將目標縮放到該範圍內。"
    ),
    "`{loss}` takes scores of any size, and is given those that a {activation} lets through": (
        "`{loss}` 接受任何大小的分數，卻只收到 {activation} 放行的分數"
    ),
    "The scores cannot be as low, or as far apart, as a sure answer needs.": (
        "分數無法像有把握的答案所需的那樣低，或相差那樣大。"
    ),
    "`{loss}` measures the distance to whole numbers from {low:.4g} to {high:.4g}, which look "
    "like classes": "`{loss}` 量的是與 {low:.4g} 到 {high:.4g} 的整數之間的距離，而它們看似類別",
    "Between classes there is no distance: class 2 is not nearer to 3 than to 9.": (
        "類別之間沒有距離：類別 2 並不比 9 更接近 3。"
    ),
    "If they are classes, give the model an output for each and use `cross_entropy`.": (
        "若它們是類別，請讓模型對每個類別各有一個輸出，並使用 `cross_entropy`。"
    ),
}
