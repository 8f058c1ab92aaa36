"""Pages of rules: their summaries and the titles of their sections; the rest stays English."""

MESSAGES: dict[str, str] = {
    "Why it matters": "為何重要",
    "How it is measured": "如何量測",
    "How to fix": "如何修正",
    "False alarms": "誤報",
    "References": "參考資料",
    "Options": "選項",
    "| option | default |": "| 選項 | 預設值 |",
    "The deeper the layer, the less it depends on the input, until the output is the same for "
    "all.": "層數越深，就越不依賴輸入，直到所有輸入的輸出都相同。",
    "Units of a ReLU layer are zero for every sample, and get no gradient that could change it.": (
        "某 ReLU 層的單元對所有樣本都輸出 0，也得不到能改變這件事的梯度。"
    ),
    "Every way from the loss back to a layer passes a chain of sigmoids, which stops the "
    "gradient.": "從損失回到某層的每一條路徑都經過一連串 sigmoid，使梯度無法通過。",
    "The gradient shrinks layer by layer until the first layers hardly move.": (
        "梯度逐層縮小，最前面的幾層幾乎不動。"
    ),
    "Parameters that the optimizer is to train have never had a gradient.": (
        "最佳化器要訓練的參數從未得到梯度。"
    ),
    "Gradients are not cleared between steps, so a step applies a sum of those before, too.": (
        "每一步之間沒有清除梯度，因此更新時也套用了先前各步梯度的總和。"
    ),
    "In eval mode the model normalizes by other statistics than those it was trained with.": (
        "模型在 eval 模式下，用來正規化的統計量與訓練時不同。"
    ),
    "Evaluation normalizes by running statistics that have seen too few batches to be right.": (
        "評估時所用的 running 統計量只看過太少批次，尚不準確。"
    ),
    "A batch is so small that BatchNorm normalizes by noise.": (
        "批次太小，BatchNorm 形同以雜訊做正規化。"
    ),
    "Normalization layers train in a mode that cannot be meant.": (
        "正規化層的訓練模式顯然不是原本的用意。"
    ),
    "The optimizer updates tensors that no model uses, while the model's own are held by none.": (
        "最佳化器更新的是沒有任何模型使用的張量，而模型自己的參數卻不在任何最佳化器中。"
    ),
    "The loss, a gradient or a parameter is NaN or infinite; the origin is named if it is "
    "known.": "損失、梯度或參數為 NaN 或無限大；若知道來源，會指出其位置。",
    "The gradient grows layer by layer, until the first layers are torn away from where they "
    "were.": "梯度逐層放大，最前面的幾層被扯離原本的位置。",
    "Probabilities are given to a loss that expects scores, and softens them a second time.": (
        "把機率交給了預期收到 logits 的損失函數，使其再被 softmax 平滑一次。"
    ),
    "The first steps change the weights by a large part of their own size.": (
        "最初幾步對權重的改變，佔了權重本身大小的一大部分。"
    ),
}
