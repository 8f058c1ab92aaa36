"""L011, L016 to L018: sums over a batch, targets, and the order of the data."""

MESSAGES: dict[str, str] = {
    "The targets of a regression are far from what a network gives, or from each other.": (
        "回歸的目標與網路給出的數值相差甚遠，或彼此相差甚遠。"
    ),
    "the targets of {model} are {mean:.4g} on average, with a standard deviation of {std:.3g}, "
    "and what it gives before training has an RMS of {given:.2g}": (
        "{model} 的目標平均為 {mean:.4g}、標準差為 {std:.3g}，"
        "而它在訓練前輸出的均方根為 {given:.2g}"
    ),
    "The targets are not scaled, so that growing to their size comes first.": (
        "目標沒有縮放，因此網路得先長到那樣的大小。"
    ),
    "y = (y - mean) / std  # of the training targets; predicted = output * std + mean": (
        "y = (y - mean) / std  # 取自訓練目標；predicted = output * std + mean"
    ),
    "With which power of the batch's size the loss grows, from half of a batch to all of it: 0 of "
    "a mean, 1 of a sum.": "損失隨批次大小的幾次方增長，由半個批次到整個批次：平均為 0，總和為 1。",
    "Norm of the first step of gradient descent over that of the weights it moves.": (
        "梯度下降第一步的範數，除以其所移動之權重的範數。"
    ),
    "the batch has fewer than 4 samples": "批次少於 4 個樣本",
    "the loss is 0, or not finite": "損失為 0，或不是有限的數",
    "the loss is neither the mean nor the sum over its samples": (
        "損失既不是各樣本的平均，也不是總和"
    ),
    "The loss is a sum over the batch or over batches, and plain gradient descent goes too far.": (
        "損失是整個批次或多個批次的總和，而普通梯度下降走得太遠。"
    ),
    "each step of {model} is taken on the sum of {passes:.0f} losses, which nothing divides, and "
    "the first ones move its weights by {moved:.2g} of their size (threshold {least:g}); divided "
    "it would be {divided:.2g}": (
        "{model} 的每一步都取自 {passes:.0f} 個損失之和，沒有任何東西除以個數，最初幾步使權重移動其"
        "大小的 {moved:.2g}（門檻 {least:g}）；除以個數則為 {divided:.2g}"
    ),
    "Accumulated gradients are summed, and the learning rate is that of a mean.": (
        "累積的梯度是總和，而學習率是為平均所設。"
    ),
    "(loss / {passes:.0f}).backward()": "(loss / {passes:.0f}).backward()",
    "optimizers that normalize their steps": "會正規化步長的最佳化器",
    "losses that are scaled": "經過縮放的損失",
    "the loss of {model} is a sum over the batch (it grows with the batch's size to the power of "
    "{slope:.2f}), and the first step of SGD would move the weights by {moved:.2g} of their norm "
    "(threshold {step:g})": (
        "{model} 的損失是整個批次的總和（隨批次大小的 {slope:.2f} 次方增長），"
        "而 SGD 的第一步會使權重移動其範數的 {moved:.2g} 倍（閾值 {step:g}）"
    ),
    "The loss is summed, and the learning rate is that of a mean.": (
        "損失取的是總和，學習率卻是為平均而設的。"
    ),
    'reduction="mean"  # or loss.mean(); or the learning rate over the terms': (
        'reduction="mean"  # 或 loss.mean()；或將學習率除以項數'
    ),
    "Features that are the target, and sequences that are their own.": (
        "與目標相同的特徵，以及以自己為目標的序列。"
    ),
    "The target is among the inputs, or a language model is to say what it has just read.": (
        "目標就在輸入之中，或語言模型要說的正是它剛讀到的。"
    ),
    "the target at each of {steps} positions is the element that {model} has just read, though "
    "its outputs follow from earlier positions only, as if the next one were asked": (
        "{steps} 個位置上的目標都是 {model} 剛讀到的元素，但其輸出只取決於較早的位置，"
        "如同要求的是下一個元素"
    ),
    "The target is not shifted by one.": "目標沒有移動一位。",
    "inputs, targets = text[:, :-1], text[:, 1:]": "inputs, targets = text[:, :-1], text[:, 1:]",
    "a model that looks ahead": "會向後看的模型",
    "feature {feature} of what {model} is given is the target but for scale and offset": (
        "{model} 所收到的第 {feature} 個特徵，除了縮放與平移之外就是目標"
    ),
    "The target, or what it is computed from, is among the features.": (
        "目標，或用以計算目標的數值，就在特徵之中。"
    ),
    "Leave feature {feature} out, and look for others that are made from the target.": (
        "請拿掉第 {feature} 個特徵，並找找是否還有其他由目標得來的特徵。"
    ),
    "How often samples half a batch apart are of one class, in the data's order.": (
        "依資料的順序，相隔半個批次的樣本屬於同一類別的頻率。"
    ),
    "How often any two of these samples are.": "這些樣本中任意兩個屬於同一類別的頻率。",
    "the training loader draws its samples in an order of its own": (
        "訓練的載入器以自己的順序抽取樣本"
    ),
    "the data are not read by place in batches of 4 or more": (
        "資料不是依位置以 4 個以上的批次讀取的"
    ),
    "no class of each sample was read": "沒有讀到每個樣本的類別",
    "samples half a batch apart are of the same class, or of the same quarter of all numbers, in "
    "{alike:.0%} of the cases, and any two samples in {chance:.0%}: the training reads data that "
    "lie sorted in their order": (
        "相隔半個批次的樣本有 {alike:.0%} 屬於同一類別（或所有數值的同一個四分位），"
        "而任意兩個樣本為 {chance:.0%}：訓練依序讀取了已排序的資料"
    ),
    "Nothing shuffles the data.": "沒有任何東西打亂資料。",
    "DataLoader(dataset, batch_size=..., shuffle=True)": (
        "DataLoader(dataset, batch_size=..., shuffle=True)"
    ),
    "a class that most of the data are of": "占資料大多數的類別",
}
